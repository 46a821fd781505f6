/** Starts the page: makes the parts, joins them, draws. */

import { Attention, newMessages } from "./core/attention.js";
import { Actions, ownZone } from "./core/actions.js";
import { connect } from "./core/api.js";
import { copyText } from "./core/copy.js";
import { DetailKeeper } from "./pages/detail.js";
import { EventStream } from "./core/event-stream.js";
import { render } from "./core/html.js";
import { loadLanguage, pickLanguage, t } from "./core/i18n.js";
import { HomeKeeper } from "./pages/home-keeper.js";
import { JobsKeeper } from "./pages/jobs.js";
import { Link } from "./core/link.js";
import { MemoryKeeper } from "./pages/memory-keeper.js";
import { TriggerKeeper } from "./pages/trigger-keeper.js";
import { UsageKeeper } from "./pages/usage.js";
import {
  applyTheme,
  readDraft,
  readOutbox,
  readPref,
  SESSION_KEY,
  sessionKey,
  tabId,
  writeDraft,
  writeOutbox,
  writePref,
} from "./core/prefs.js";
import { blockAt } from "./core/reading.js";
import { above, addressOf, askedIn, hashOf, loginCode, routeOf } from "./core/route.js";
import { ScrollKeeper } from "./core/scroll.js";
import { live } from "./core/select.js";
import { Session } from "./core/session.js";
import { Store } from "./core/store.js";
import { insteadOfBrowser } from "./core/typing.js";
import { applyPanelWidth } from "./ui/panel-edge.js";
import { appView } from "./ui/app.js";

const TICK_MS = 1000;
const LONG_PRESS_MS = 500;
/** When nothing goes on, the ages on the page are drawn anew this often. */
const QUIET_TICK_MS = 15_000;
/** What is not drawn by then is not waited for any more. */
const PATIENCE_MS = 5000;
/** A clock that jumped so far: the machine slept. */
const SLEPT_MS = 30_000;

const root = /** @type {HTMLElement} */ (document.getElementById("app"));
const iconLink = /** @type {HTMLLinkElement} */ (document.querySelector("link[rel=icon]"));
const announcer = /** @type {HTMLElement} */ (document.getElementById("announcer"));
const wide = matchMedia("(min-width: 1000px)");

const tab = tabId();
const api = connect(tab, sessionKey);
const store = new Store(drawSoon);
const session = new Session(store, api);
const timers = {
  later: (/** @type {() => void} */ act, /** @type {number} */ ms) => setTimeout(act, ms),
  drop: (/** @type {any} */ timer) => clearTimeout(timer),
};
const keepers = {
  detail: new DetailKeeper(store, api),
  jobs: new JobsKeeper(store, api, { ...timers, hidden: () => document.hidden }),
  trigger: new TriggerKeeper(store, api, { ...timers, zone: ownZone }),
  memory: new MemoryKeeper(store, api, { ...timers, read: readPref, keep: writePref }),
  usage: new UsageKeeper(store, api, timers),
  home: new HomeKeeper(store, api, timers),
};
/** @type {ScrollKeeper | null} */
let keeper = null;
/**
 * What is waited for until it is drawn, which may be late, and what is done with it then.
 *
 * @type {{selector: string, meet: (place: HTMLElement) => void, until: number} | null}
 */
let awaited = null;

const hands = {
  toBottom: () => keeper?.toBottom(!matchMedia("(prefers-reduced-motion: reduce)").matches),
  focusComposer: () => setTimeout(() => document.getElementById("composer")?.focus()),
  showMessage,
  focus: focusSoon,
};
const actions = new Actions(store, api, session, hands, keepers, timers);

const lines = {
  ...timers,
  open: (/** @type {string} */ since) => new EventStream(api.stream(since), api.headers),
  poll: api.changes,
  hidden: () => document.hidden && !store.state.notifying, // else nothing could be shown
};
const link = new Link(lines, session.hearers());
session.follow(link);

const attention = new Attention({
  hidden: () => document.hidden,
  mark: markUnread,
  show: (title, body, tag) => {
    if (!store.state.notifying) return;
    const shown = new Notification(title, { body, tag, icon: iconLink.href });
    shown.onclick = () => window.focus();
  },
});

/** @param {number} unread  What came while the page was hidden. */
function markUnread(unread) {
  document.title = unread ? `(${unread > 99 ? "99+" : unread}) mimikit` : "mimikit";
  iconLink.href = iconLink.href.replace(/favicon.*$/, unread ? "favicon-unread.svg" : "favicon.svg");
}

/** A hidden page gets no frames, and must still keep its state and its title right. */
function drawSoon(/** @type {() => void} */ draw) {
  if (document.hidden) setTimeout(draw, 100);
  else requestAnimationFrame(draw);
}

store.onChange((state, before) => {
  for (const one of [...Object.values(keepers), actions.engines]) one.onChange(state, before);
  draw(state, before);
  keepDrafts(state, before);
  keepAddress(state);
  announce(state, before);
  attention.onChange(state, before);
});

/** @param {State} state @param {State} before */
function draw(state, before) {
  keeper?.before();
  render(appView(store.state, actions), root);
  const scroller = document.getElementById("scroll");
  if (!scroller) keeper = null;
  else if (keeper?.scroller !== scroller) keeper = makeKeeper(scroller);
  keeper?.after();
  growComposer();
  followOutput();
  if (state.route !== before.route) focusPlace(state, before);
  meetAwaited();
  showLine(state);
}

/** @param {HTMLElement} scroller */
function makeKeeper(scroller) {
  store.dispatch({ type: "following", following: true });
  return new ScrollKeeper(scroller, () => document.getElementById("timeline"), {
    following: (following) => store.dispatch({ type: "following", following }),
    nearTop: () => {
      const { before, older, load } = store.state;
      if (before && older === "idle" && load === "ready") void actions.loadOlder();
    },
  });
}

/** The field is as tall as its text; browsers that can do this by style do it by style. */
function growComposer() {
  if (CSS.supports("field-sizing", "content")) return;
  const field = document.getElementById("composer");
  if (!(field instanceof HTMLTextAreaElement)) return;
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

/** Output follows its end as long as the reader is there. */
function followOutput() {
  const box = document.getElementById("output");
  if (!box) return;
  if (box.dataset.away === undefined) {
    box.dataset.away = "";
    box.addEventListener(
      "scroll",
      () => {
        const left = box.scrollHeight - box.scrollTop - box.clientHeight;
        box.dataset.away = left > 24 ? "yes" : "";
      },
      { passive: true },
    );
  }
  if (!box.dataset.away) box.scrollTop = box.scrollHeight;
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
  const found = next ?? block; // of a message, what was said
  found.classList.add("is-found");
  setTimeout(() => found.classList.remove("is-found"), 2500);
}

/** @param {string} selector  Focus what is there once the page is drawn. */
function focusSoon(selector) {
  onceDrawn(selector, (place) => place.focus());
}

/** @param {string} selector @param {(place: HTMLElement) => void} meet */
function onceDrawn(selector, meet) {
  setTimeout(() => {
    awaited = { selector, meet, until: performance.now() + PATIENCE_MS };
    meetAwaited();
  }, 50);
}

function meetAwaited() {
  if (!awaited) return;
  const { selector, meet, until } = awaited;
  const place = root.querySelector(selector);
  if (!place && performance.now() < until) return;
  awaited = null;
  if (place instanceof HTMLElement) meet(place);
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
  const place = row ?? root.querySelector("[data-focus]") ?? panel;
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

/** @param {string} id a message, shown in the chat */
function showMessage(id) {
  if (!store.state.wide) actions.go({ view: "chat" });
  onceDrawn(`#${CSS.escape(`m-${id}`)}`, (element) => {
    keeper?.show(element);
    element.classList.add("is-shown");
    setTimeout(() => element.classList.remove("is-shown"), 2000);
  });
}

/** @param {State} state @param {State} before */
function keepDrafts(state, before) {
  if (state.draft !== before.draft) writeDraft(state.draft);
  if (state.outbox !== before.outbox) {
    writeOutbox(state.outbox.filter((item) => item.state !== "accepted"));
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
    const line = document.createElement("p");
    line.textContent = `${t(`role.${message.role}`)} ${message.text.slice(0, 400)}`;
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
  if (slept && !document.hidden) link.nudge();
  if (document.hidden) return;
  const { state } = store;
  const ticking = live(state) || state.turn || state.question;
  if (ticking || now - lastDrawn >= QUIET_TICK_MS) tick();
}, TICK_MS);

function tick() {
  lastDrawn = Date.now();
  store.dispatch({ type: "tick", now: lastDrawn });
}

// --- the browser's events

document.addEventListener("visibilitychange", () => {
  link.look();
  if (document.hidden) return;
  attention.seen();
  tick();
});
addEventListener("online", () => link.nudge());
addEventListener("offline", () => store.set({ connection: "offline" }));
addEventListener("storage", ({ key, newValue }) => {
  if (key === SESSION_KEY) session.onKey(Boolean(newValue)); // another tab wrote it
});
addEventListener("hashchange", () => {
  takeHash();
  const { panel, route } = store.state;
  if (panel === "closed" && route.view !== "chat") store.set({ panel: "side" }); // a link led there
});
addEventListener("pagehide", () => {
  keepDrafts(store.state, { ...store.state, draft: "\0" });
  keepers.memory.keepDrafts(store.state, null);
});
addEventListener("pageshow", (event) => {
  if (event.persisted) void session.load(); // back from the browser's cache, long after
});
wide.addEventListener("change", () => {
  store.set({ roomy: wide.matches, wide: wide.matches && store.state.panel !== "page" });
});

for (const kind of /** @type {const} */ (["dragover", "drop", "paste"])) {
  document.addEventListener(kind, (event) => {
    const { types = [] } =
      ("dataTransfer" in event ? event.dataTransfer : event.clipboardData) ?? {};
    const field = event.target instanceof Element && event.target.matches(FIELDS);
    const instead = insteadOfBrowser(kind, types, field);
    if (instead) event.preventDefault();
    if (instead === "tell") actions.notify(t("send.noFiles"), "error");
  });
}

document.addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest("[data-copy]") : null;
  if (button) void copyFrom(button);
});

/** A long press on a message shows what can be done with it, where nothing hovers. */
let pressed = 0;
document.addEventListener("pointerdown", ({ target, pointerType }) => {
  const message = target instanceof Element ? target.closest(".message") : null;
  if (!message || pointerType !== "touch") return;
  pressed = setTimeout(() => {
    root.querySelector(".is-pressed")?.classList.remove("is-pressed");
    message.classList.add("is-pressed");
  }, LONG_PRESS_MS);
});
for (const kind of ["pointerup", "pointercancel", "pointermove"]) {
  document.addEventListener(kind, () => clearTimeout(pressed));
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing || event.defaultPrevented) return;
  if (document.querySelector(":popover-open, dialog[open]")) return; // the browser closes it
  const { route, confirming, wide: isWide, memory: found } = store.state;
  const up = above(route);
  if (confirming === "note") actions.memory.keepTyping();
  else if (confirming.startsWith("backlog ")) actions.memory.keepItem();
  else if (confirming) actions.confirmRemoval("");
  else if (route.view === "memory" && found.query) actions.memory.clear();
  else if (up && !typing(event)) actions.go(up);
  else if (route.view !== "chat" && !isWide) actions.go({ view: "chat" });
});

document.addEventListener("keydown", (event) => {
  const plain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.isComposing;
  const isPalette = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey);
  const inField = event.target instanceof Element && event.target.matches(FIELDS);
  const isKey = plain && !inField && (event.key === "/" || event.key === "?");
  if (!(isPalette || isKey) || event.defaultPrevented || store.state.session !== "in") return;
  if (document.querySelector(":popover-open, dialog[open]")) return;
  event.preventDefault();
  if (isPalette) actions.openPalette();
  else if (event.key === "?") actions.showKeys();
  else actions.goSearch();
});

const FIELDS = "input, select, textarea, [contenteditable]";

/** @param {KeyboardEvent} event  Escape in a field closes what the field has opened, no more. */
function typing({ target }) {
  return (
    target instanceof Element &&
    Boolean(target.closest(":is(#trigger-form, #note-form) :is(input, select, textarea)"))
  );
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
  const chosen = readPref("language");
  const language = chosen === "en" || chosen === "zh" ? chosen : pickLanguage(navigator.languages);
  const stored = readPref("theme");
  const theme = stored === "light" || stored === "dark" ? stored : "system";
  applyTheme(theme);
  applyPanelWidth();
  const laid = readPref("panel");
  const panel = laid === "closed" || laid === "page" ? laid : "side";
  await loadLanguage(language);
  const unsent = readOutbox();
  store.set({
    language,
    theme,
    panel,
    roomy: wide.matches,
    wide: wide.matches && panel !== "page",
    notifying: readPref("notify") === "on" && globalThis.Notification?.permission === "granted",
    draft: readDraft(),
    outbox: unsent.map((item) => ({ ...item, state: "failed", error: t("delivery.reloaded") })),
    now: Date.now(),
  });
  const joins = loginCode(location.hash);
  takeHash();
  return joins ? undefined : await session.load();
}

void begin();
