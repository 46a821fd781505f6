/** Starts the page: makes the parts, joins them, draws. */

import { Actions } from "./core/actions.js";
import { connect } from "./core/api.js";
import { countUnread, markUnread, newMessages, spoken } from "./core/attention.js";
import { copyText } from "./core/copy.js";
import { attached } from "./core/files.js";
import { flash } from "./core/focus.js";
import { render } from "./core/html.js";
import { loadLanguage, pickLanguage, t } from "./core/i18n.js";
import * as prefs from "./core/prefs.js";
import { blockAt } from "./core/reading.js";
import { above, addressOf, askedIn, hashOf, loginCode, routeOf } from "./core/route.js";
import { ScrollKeeper } from "./core/scroll.js";
import { firesSoon, live } from "./core/select.js";
import { Session } from "./core/session.js";
import { Store } from "./core/store.js";
import { insteadOfBrowser } from "./core/typing.js";
import { applyPanelWidth } from "./ui/panel-edge.js";
import { appView } from "./ui/app.js";

const TICK_MS = 1000;
const LONG_PRESS_MS = 500;
/** When nothing goes on, the ages on the page are drawn anew this often. */
const QUIET_TICK_MS = 15_000;
/** A clock that jumped so far: the machine slept. */
const SLEPT_MS = 30_000;
const FIELDS = "input, select, textarea, [contenteditable]";
/** Escape in one of these closes what the field has opened, no more. */
const FORM_FIELDS = ":is(#trigger-form, #note-form) :is(input, select, textarea)";

const root = /** @type {HTMLElement} */ (document.getElementById("app"));
const announcer = /** @type {HTMLElement} */ (document.getElementById("announcer"));
const wide = matchMedia("(min-width: 1000px)");

const api = connect(prefs.tabId(), prefs.sessionKey);
const store = new Store(drawSoon);
const session = new Session(store, api);
const actions = new Actions(store, api, session);

/** A hidden page gets no frames, and must still keep its state and its title right. */
function drawSoon(/** @type {() => void} */ draw) {
  if (document.hidden) setTimeout(draw, 100);
  else requestAnimationFrame(draw);
}

store.onChange((state, before) => {
  const { keepers, triggers, memory, engines, life } = actions;
  for (const one of [...Object.values(keepers), triggers, memory, engines, life]) one.onChange(state, before);
  draw(state, before);
  keepDrafts(state, before);
  keepAddress(state);
  announce(state, before);
  countUnread(state, before);
});

/** @param {State} state @param {State} before */
function draw(state, before) {
  actions.scroll?.before();
  const follows = isAtEnd(document.getElementById("output"));
  render(appView(store.state, actions), root);
  const scroller = document.getElementById("scroll");
  if (actions.scroll?.scroller !== scroller) {
    actions.scroll = scroller && new ScrollKeeper(scroller, store, onNearTop);
  }
  actions.scroll?.after();
  growComposer();
  const output = document.getElementById("output");
  if (output && follows) output.scrollTop = output.scrollHeight;
  fillPictures();
  if (state.route !== before.route) focusPlace(state, before);
  showLine(state);
}

function onNearTop() {
  const { older, load } = store.state;
  if (older === "idle" && load === "ready") void actions.loadOlder();
}

/** The field is as tall as its text; browsers that can do this by style do it by style. */
function growComposer() {
  if (CSS.supports("field-sizing", "content")) return;
  const field = document.getElementById("composer");
  if (!(field instanceof HTMLTextAreaElement)) return;
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

/** @param {HTMLElement | null} box  Output is followed as long as the reader is at its end. */
function isAtEnd(box) {
  return !box || box.scrollHeight - box.scrollTop - box.clientHeight <= 24;
}

/** Fetch what pictures show: their address could not carry the session's key. */
function fillPictures() {
  for (const image of root.querySelectorAll("img[data-file]:not([data-asked])")) {
    image.setAttribute("data-asked", "");
    const reader = new FileReader();
    reader.onload = () => image.setAttribute("src", String(reader.result));
    api.file(image.getAttribute("data-file") ?? "").then((blob) => reader.readAsDataURL(blob), () => {});
  }
}

/** @type {State["route"] | null} the place whose line was shown */
let lineShown = null;

/** @param {State} state  A file that is opened at a line is read from there. */
function showLine({ route, note }) {
  if (route.view !== "note" || !route.line || route === lineShown || note?.load !== "ready") return;
  const box = document.getElementById("note-body");
  const panel = document.getElementById("panel-body");
  if (!box || !panel || !note.file || note.path !== route.path) return;
  lineShown = route;
  const block = blockAt(box, note.file.text, route.line);
  if (!block) return;
  panel.scrollTop += block.getBoundingClientRect().top - panel.getBoundingClientRect().top;
  panel.scrollTop -= panel.clientHeight / 3;
  block.tabIndex = -1;
  block.focus({ preventScroll: true });
  const next = block.classList.contains("said") ? block.nextElementSibling : null;
  flash(next ?? block, "is-found", 2500); // of a message, what was said
}

/** Going somewhere moves the focus there; coming back, to where one left. */
function focusPlace(/** @type {State} */ state, /** @type {State} */ before) {
  const { route } = state;
  const panel = document.getElementById("panel-body");
  if (route.view === "chat") {
    if (!state.wide) document.getElementById("composer")?.focus({ preventScroll: true });
    return;
  }
  if (panel) panel.scrollTop = 0;
  const left = leftRow(before.route, route);
  const row = left ? root.querySelector(left) : null;
  const place = row ?? root.querySelector("[data-focus]") ?? root.querySelector(".back") ?? panel;
  if (place instanceof HTMLElement) place.focus();
}

/** @param {State["route"]} from @param {State["route"]} to  The row of a list that one comes back to. */
function leftRow(from, to) {
  const task = from.view === "task" && to.view === "tasks";
  const trigger = from.view === "trigger" && to.view === "triggers";
  if (from.view === "note" && to.view === "memory") {
    const row = CSS.escape(from.line ? `${from.path}:${from.line}` : from.path);
    return `[data-note="${row}"] a`;
  }
  return task || trigger ? `[data-${from.view}="${CSS.escape(from.id)}"] a` : "";
}

/** @param {State} state @param {State} before */
function keepDrafts(state, before) {
  if (state.draft !== before.draft) prefs.writeDraft(state.draft);
  if (state.files !== before.files) {
    prefs.writeUnsent("files", state.files.flatMap(({ sent }) => sent ?? []));
  }
  if (state.outbox !== before.outbox) {
    prefs.writeUnsent("outbox", state.outbox.filter((item) => item.state !== "accepted"));
  }
}

/** @param {State} state  What is looked for stands in the address: a reload and the back button find it again. */
function keepAddress(state) {
  const { hash } = location;
  const address = addressOf(state.route, state);
  const isHere = hashOf(routeOf(hash)) === hashOf(state.route) && !loginCode(hash);
  if (isHere && hash !== address && state.route.view !== "chat") history.replaceState(null, "", address);
}

/** Tell those who listen instead of look what was said: what came new, not what was loaded. */
function announce(/** @type {State} */ state, /** @type {State} */ before) {
  for (const message of newMessages(state, before)) {
    const { triggerId: id } = message;
    if (id && before.messages.some(({ triggerId }) => triggerId === id)) continue; // it is one line
    const line = document.createElement("p");
    line.textContent = `${t(`role.${message.role}`)} ${spoken(message.text).slice(0, 400)}`;
    announcer.append(line);
  }
  while (announcer.childElementCount > 5) announcer.firstElementChild?.remove();
}

// --- time passes

let lastTick = Date.now();
let lastDrawn = 0;
setInterval(() => {
  const now = Date.now();
  const slept = now - lastTick > SLEPT_MS;
  lastTick = now;
  if (slept && !document.hidden) session.link.nudge();
  if (document.hidden) return;
  const { state } = store;
  const ticking = live(state) || state.turn || state.question || firesSoon(state);
  if (ticking || now - lastDrawn >= QUIET_TICK_MS) tick();
}, TICK_MS);

function tick() {
  lastDrawn = Date.now();
  store.dispatch({ type: "tick", now: lastDrawn });
}

// --- the browser's events

document.addEventListener("visibilitychange", () => {
  session.link.look();
  if (document.hidden) return;
  markUnread(0);
  tick();
});
for (const kind of ["online", "offline"]) addEventListener(kind, () => session.retry());
addEventListener("storage", ({ key, newValue }) => {
  if (key === prefs.SESSION_KEY) session.onKey(Boolean(newValue)); // another tab wrote it
});
addEventListener("hashchange", () => {
  takeHash();
  const { panel, route } = store.state;
  if (panel === "closed" && route.view !== "chat") store.set({ panel: "side" }); // a link led there
});
addEventListener("pagehide", () => keepDrafts(store.state, { ...store.state, draft: "\0" }));
addEventListener("pageshow", (event) => {
  if (event.persisted) void session.load(); // back from the browser's cache, long after
});
wide.addEventListener("change", () => {
  store.set({ roomy: wide.matches, wide: wide.matches && store.state.panel !== "page" });
});

for (const kind of /** @type {const} */ (["dragover", "dragleave", "drop", "paste"])) {
  document.addEventListener(kind, (event) => {
    const given = "dataTransfer" in event ? event.dataTransfer : event.clipboardData;
    const types = given?.types ?? [];
    const instead = insteadOfBrowser(kind, types, Boolean(around(event, FIELDS)));
    if (instead) event.preventDefault();
    root.toggleAttribute("data-dropping", kind === "dragover" && types.includes("Files"));
    if (instead === "take" && store.state.session === "in") actions.files.add(given?.files ?? []);
  });
}

document.addEventListener("click", (event) => {
  const button = around(event, "[data-copy]");
  if (button) void copyFrom(button);
});

/** A long press on a message shows what can be done with it, where nothing hovers. */
let pressed = 0;
document.addEventListener("pointerdown", (event) => {
  const message = around(event, ".message");
  if (!message || event.pointerType !== "touch") return;
  pressed = setTimeout(() => {
    root.querySelector(".is-pressed")?.classList.remove("is-pressed");
    message.classList.add("is-pressed");
  }, LONG_PRESS_MS);
});
for (const kind of ["pointerup", "pointercancel", "pointermove"]) {
  document.addEventListener(kind, () => clearTimeout(pressed));
}

document.addEventListener("keydown", (event) => {
  if (event.isComposing || event.defaultPrevented) return;
  if (document.querySelector(":popover-open, dialog[open]")) return; // the browser closes it
  if (event.key === "Escape") return goUp(event);
  const act = actOf(event);
  if (!act || store.state.session !== "in") return;
  event.preventDefault();
  act();
});

/** @param {KeyboardEvent} event */
function goUp(event) {
  const { route, confirming, wide: isWide, memory: found } = store.state;
  const up = above(route);
  if (confirming) actions.keep();
  else if (route.view === "memory" && found.query) actions.memory.clear();
  else if (up && !around(event, FORM_FIELDS)) actions.go(up);
  else if (route.view !== "chat" && !isWide) actions.go({ view: "chat" });
}

/** @param {KeyboardEvent} event  What a key does anywhere on the page. */
function actOf(event) {
  const { key, altKey, ctrlKey, metaKey } = event;
  if (ctrlKey || metaKey) return key.toLowerCase() === "k" ? () => actions.openPalette() : null;
  if (altKey || around(event, FIELDS)) return null;
  return { "/": () => actions.goSearch(), "?": () => actions.showKeys() }[key];
}

/** @param {Event} event @param {string} selector  The nearest such element that it happened in. */
function around({ target }, selector) {
  return target instanceof Element ? target.closest(selector) : null;
}

/** @param {Element} button */
async function copyFrom(button) {
  const code = button.parentElement?.querySelector("pre");
  const done = await copyText((code?.dataset.whole ?? code?.textContent ?? "").replace(/\n$/, ""));
  button.textContent = t(done ? "code.copied" : "code.notCopied");
  setTimeout(() => (button.textContent = t("code.copy")), 1800);
}

/** The fragment says where we are; or, once, who we are. */
function takeHash() {
  const code = loginCode(location.hash);
  if (!code) {
    store.set({ route: routeOf(location.hash) });
    return actions.lookFor(askedIn(location.hash));
  }
  history.replaceState(null, "", location.pathname);
  void session.login({ code });
  return undefined;
}

// --- begin

async function begin() {
  const chosen = prefs.readPref("language");
  const language = chosen === "en" || chosen === "zh" ? chosen : pickLanguage(navigator.languages);
  const stored = prefs.readPref("theme");
  const theme = stored === "light" || stored === "dark" ? stored : "system";
  prefs.applyTheme(theme);
  applyPanelWidth();
  const laid = prefs.readPref("panel");
  const panel = laid === "closed" || laid === "page" ? laid : "side";
  await loadLanguage(language);
  const unsent = prefs.readUnsent("outbox");
  store.set({
    language,
    theme,
    panel,
    roomy: wide.matches,
    wide: wide.matches && panel !== "page",
    notifying: prefs.readPref("notify") === "on" && globalThis.Notification?.permission === "granted",
    draft: prefs.readDraft(),
    files: prefs.readUnsent("files").map(attached),
    outbox: unsent.map((item) => ({ ...item, state: "failed", error: t("delivery.reloaded") })),
    now: Date.now(),
  });
  const joins = loginCode(location.hash);
  takeHash();
  return joins ? undefined : await session.load();
}

void begin();
