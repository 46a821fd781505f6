/** Starts the page: makes the parts, joins them, draws. */

import { Actions } from "./actions.js";
import { connect } from "./api.js";
import { AppInstall } from "./app-install.js";
import { copyText } from "./copy.js";
import { deedsOf } from "./deeds.js";
import { takeDrops } from "./drops.js";
import { EventStream } from "./event-stream.js";
import { HomeKeeper, LogKeeper } from "./home-keeper.js";
import { render } from "./html.js";
import { filesFrom, keptFiles } from "./file-state.js";
import { loadLanguage, pickLanguage, t } from "./i18n.js";
import { Link } from "./link.js";
import { MessageTools } from "./message-tools.js";
import {
  applyTheme,
  readComposing,
  readOutbox,
  readPref,
  sessionKey,
  tabId,
  writeComposing,
  writeOutbox,
  writePref,
} from "./prefs.js";
import { Notifier } from "./notifier.js";
import { Overlays, isCovered } from "./overlays.js";
import { applyWidth, keptWidth } from "./panel-size.js";
import { isFindKey, mark } from "./finding.js";
import { blockAt } from "./reading.js";
import { loginCode, routeOf } from "./route.js";
import { PlaceKeeper, placeShown } from "./places.js";
import { ScrollKeeper } from "./scroll.js";
import { live, placeOf, timeline } from "./select.js";
import { upFrom } from "./search-state.js";
import { saveFile } from "./save.js";
import { Session } from "./session.js";
import { Store } from "./store.js";
import { Tabs } from "./tabs.js";
import { transferBy, upload } from "./transfer.js";
import { UnreadKeeper } from "./unread-keeper.js";
import { focusAtStart, growComposer, keepAboveKeyboard } from "./writing.js";
import { appView } from "./views/app.js";
import { viewPicture } from "./views/viewer.js";

/** @typedef {import("./state-types.js").State} State */

const TICK_MS = 1000;
/** When nothing goes on, the ages on the page are drawn anew this often. */
const QUIET_TICK_MS = 15_000;
/** What is not drawn by then is not waited for any more. */
const PATIENCE_MS = 5000;
/** A clock that jumped so far: the machine slept. */
const SLEPT_MS = 30_000;

/** What is asked of places that have not come yet: there is nothing to be done in them. */
const NOBODY_THERE = {
  reloadTask: () => {},
  reloadWork: () => {},
  loadWork: () => {},
  loadJob: () => {},
  fillOutput: () => {},
  reloadTrigger: () => {},
  reloadMemory: () => {},
  reloadBacklog: () => {},
  reloadUsage: () => {},
  reloadReason: () => {},
  reloadNote: () => {},
  settleSearch: () => {},
};

const root = /** @type {HTMLElement} */ (document.getElementById("app"));
const announcer = /** @type {HTMLElement} */ (document.getElementById("announcer"));
const wide = matchMedia("(min-width: 1000px)");
const touch = matchMedia("(pointer: coarse)");

const tab = tabId();
const api = connect(tab, sessionKey);
const store = new Store(drawSoon);
const session = new Session(store, api);
const timers = {
  later: (/** @type {() => void} */ act, /** @type {number} */ ms) => setTimeout(act, ms),
  drop: (/** @type {any} */ timer) => clearTimeout(timer),
};
const home = new HomeKeeper(store, api, timers);
const logs = new LogKeeper(store, api, timers);
/** @type {ScrollKeeper | null} */
let keeper = null;
/**
 * What is waited for until it is drawn, which may be late, and what is done with it then.
 *
 * @type {{selector: string, meet: (place: HTMLElement) => void, until: number} | null}
 */
let awaited = null;

const actions = new Actions(store, api, session, {
  bring: (row) => keeper?.bring(row),
  toBottom: () => {
    actions.search.toNow();
    keeper?.toBottom(!matchMedia("(prefers-reduced-motion: reduce)").matches);
  },
  focusComposer: () => setTimeout(focusComposer),
  showMessage,
  showRow,
  focusError: () => focusSoon("#trigger-form [aria-invalid=true], #form-error"),
  focusRow: (row) => focusSoon(row ? `#${CSS.escape(`${row}.type`)}` : "#add-row"),
  focus: focusSoon,
  files: {
    upload,
    fetch: (id) => api.file(id),
    preview: (file) => URL.createObjectURL(file),
    forget: (preview) => URL.revokeObjectURL(preview),
    save: saveFile,
    view: (file, url) => viewPicture(file, url, () => void actions.files.save(file)),
  },
  openPalette: () => void overlays.openPalette(),
  toggleNotify: () => void notifier.toggle(),
  install: () => void app.install(),
  ...NOBODY_THERE,
});
const places = new PlaceKeeper({ store, api, actions, hands: actions.hands, timers });
const app = new AppInstall(store);
const deeds = deedsOf(store, actions);
const overlays = new Overlays(store, actions, deeds);

const tools = new MessageTools(actions.messages, () => actions.hands.focusComposer());

transferBy(api);
takeDrops(actions.files, () => store.state.session === "in" && !document.querySelector("dialog[open]"));

const tabs = new Tabs(
  (hearers) =>
    new Link(
      {
        open: (since) => new EventStream(api.stream(since), api.headers),
        poll: (since) => api.changes(since),
        later: (act, ms) => setTimeout(act, ms),
        drop: (timer) => clearTimeout(timer),
      },
      hearers,
    ),
  {
    locks: navigator.locks,
    channel: "BroadcastChannel" in window ? new BroadcastChannel("mimikit") : null,
    hidden: () => document.hidden,
    later: (act, ms) => setTimeout(act, ms),
    drop: (timer) => clearTimeout(timer),
  },
  session.hearers(),
);
session.follow(tabs);

const ICON = document.querySelector("link[rel=icon]")?.getAttribute("href") ?? "";
const unread = new UnreadKeeper(store, {
  read: readPref,
  keep: writePref,
  hidden: () => document.hidden,
  icon: ICON,
  show: (title, icon) => {
    document.title = title;
    document.querySelector("link[rel=icon]")?.setAttribute("href", icon);
  },
});
const notifier = new Notifier(store, {
  secure: isSecureContext,
  notification: window.Notification,
  locks: navigator.locks,
  worker: navigator.serviceWorker,
  hidden: () => document.hidden,
  leading: () => tabs.leading,
  icon: ICON,
  read: readPref,
  keep: writePref,
  visit: ({ to }) => {
    window.focus();
    actions.visit(to);
    if (to.view === "chat") deeds.answer();
  },
});

/** A hidden page gets no frames, and must still keep its state and its title right. */
function drawSoon(/** @type {() => void} */ draw) {
  if (document.hidden) setTimeout(draw, 100);
  else requestAnimationFrame(draw);
}

store.onChange((state, before) => {
  places.onChange(state, before);
  unread.look();
  notifier.onChange(state, before);
  home.onChange(state, before);
  logs.onChange(state, before);
  draw(state, before);
  keepDrafts(state, before);
  announce(state, before);
});

/** @param {State} state @param {State} before */
function draw(state, before) {
  keeper?.before();
  render(appView(store.state, actions), root);
  const scroller = document.getElementById("scroll");
  if (!scroller) keeper = null;
  else if (keeper?.scroller !== scroller) keeper = makeKeeper(scroller);
  keeper?.after();
  markFound(state, before);
  growComposer();
  tools.after();
  focusAtStart(state, before);
  followOutput();
  showOwnStep();
  if (isElsewhere(state.route, before.route)) {
    [left, leftFrom] = [before.route, document.activeElement];
  }
  const isThere = typeof state.places[placeShown(state)] === "function";
  if (left && (isThere || state.route.view === "chat")) {
    // Who has gone on by the keyboard meanwhile is not brought back.
    const { activeElement: at } = document;
    if (at === leftFrom || at === document.body) focusPlace(state, left);
    left = null;
  }
  meetAwaited();
  showLine(state);
}

/** @param {HTMLElement} scroller */
function makeKeeper(scroller) {
  store.dispatch({ type: "following", following: true });
  return new ScrollKeeper(scroller, {
    list: () => document.getElementById("timeline"),
    rows: () => timeline(store.state),
    sight: () => store.state.sight,
    look: (sight) => store.dispatch({ type: "sight", sight }),
    following: (following) => store.dispatch({ type: "following", following }),
    nearTop: () => {
      const { before, older, load } = store.state;
      if (before && older === "idle" && load === "ready") void actions.loadOlder();
    },
    nearEnd: () => {
      if (store.state.newer === "idle") void actions.search.loadNewer();
      return store.state.after === null;
    },
  });
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

/** A chain that is wider than its box begins at the step one looks at. */
function showOwnStep() {
  const box = document.getElementById("chain");
  const own = box?.querySelector(".is-own");
  if (!box || !own || box.dataset.shown === own.id) return;
  box.dataset.shown = own.id;
  const [place, frame] = [own.getBoundingClientRect(), box.getBoundingClientRect()];
  box.scrollLeft += place.left + place.width / 2 - frame.left - frame.width / 2;
  box.scrollTop += place.top + place.height / 2 - frame.top - frame.height / 2;
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

/** Where one writes; once it is in sight, as the chat may be brought back just now. */
function focusComposer() {
  const field = document.getElementById("composer");
  field?.focus();
  if (field && document.activeElement !== field) focusSoon("#composer");
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
  const isSeen = place?.checkVisibility({ visibilityProperty: true }) && !place.closest("[inert]");
  if (!isSeen && performance.now() < until) return;
  awaited = null;
  if (place instanceof HTMLElement) meet(place);
}

/** @type {State["route"] | null} where one comes from, until the place one goes to is drawn */
let left = null;
/** @type {Element | null} what had the focus then */
let leftFrom = null;

/** Places that are narrowed: other rows of them are the same place. */
const NARROWED = new Set(["search", "tasks", "triggers"]);

/** @param {State["route"]} route @param {State["route"]} before */
function isElsewhere(route, before) {
  return route !== before && !(route.view === before.view && NARROWED.has(route.view));
}

/** Going somewhere moves the focus there; coming back, to where one left. */
function focusPlace(/** @type {State} */ state, /** @type {State["route"]} */ from) {
  const { route } = state;
  const panel = document.getElementById("panel-body");
  if (route.view === "chat") {
    if (!state.wide && !state.touch) document.getElementById("composer")?.focus({ preventScroll: true });
    return;
  }
  if (panel) panel.scrollTop = 0;
  const selector = leftRow(from, route);
  const row = selector ? root.querySelector(selector) : null;
  const place = row ?? root.querySelector("[data-focus]") ?? panel;
  if (place instanceof HTMLElement) place.focus();
}

/** @param {State["route"]} from @param {State["route"]} to  The row of a list that one comes back to. */
function leftRow(from, to) {
  if (from.view === "task" && to.view === "tasks") {
    return `.work-row a[href="#/task/${CSS.escape(from.id)}"]`;
  }
  const trigger = from.view === "trigger" && to.view === "triggers";
  if (from.view === "note" && (to.view === "memory" || to.view === "search")) {
    const row = CSS.escape(from.line ? `${from.path}:${from.line}` : from.path);
    return `[data-note="${row}"] a`;
  }
  return trigger ? `[data-trigger="${CSS.escape(from.id)}"] a` : "";
}

/** @param {string} id a message, shown in the chat */
function showMessage(id) {
  const key = placeOf(timeline(store.state), id);
  if (key) showRow(key);
}

/** @param {string} key of an entry of the conversation */
function showRow(key) {
  actions.setFull(false);
  if (!store.state.wide) actions.go({ view: "chat" });
  keeper?.show(key);
  onceDrawn(`#${CSS.escape(`m-${key}`)}, #${CSS.escape(`row-${key}`)}`, (element) => {
    element.classList.add("is-shown");
    setTimeout(() => element.classList.remove("is-shown"), 2000);
  });
}

/** @param {State} state @param {State} before  The words that are looked for, where they are drawn. */
function markFound({ finding }, before) {
  if (!finding && !before.finding) return;
  const here = finding?.at ? CSS.escape(finding.at) : "";
  const row = here ? document.querySelector(`#m-${here}, #row-${here}`) : null;
  mark(document.getElementById("timeline"), finding?.query ?? "", row);
}

/** @param {State} state @param {State} before */
function keepDrafts(state, before) {
  if (state.draft !== before.draft) writePref("draft", state.draft);
  if (state.files !== before.files) writePref("files", keptFiles(state.files));
  if (state.composing !== before.composing) writeComposing(state.composing);
  if (state.outbox !== before.outbox) {
    writeOutbox(state.outbox.filter((item) => item.state !== "accepted"));
  }
}

/** Tell those who listen instead of look what was said: what came new, not what was loaded. */
function announce(/** @type {State} */ state, /** @type {State} */ before) {
  if (state.messages === before.messages || before.load !== "ready") return;
  if (state.after !== null || before.after !== null) return; // the past
  const last = before.messages.at(-1)?.id;
  const from = last ? state.messages.findIndex((message) => message.id === last) + 1 : 0;
  for (const message of state.messages.slice(from)) {
    if (message.role === "user") continue;
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
  if (slept && !document.hidden) tabs.nudge();
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
  tabs.look();
  unread.look();
  notifier.look();
  if (!document.hidden) tick();
});
addEventListener("storage", (event) => {
  if (event.key === "mimikit.seen") unread.hear(event.newValue);
});
navigator.serviceWorker?.addEventListener("message", (event) => {
  if (event.data?.kind === "visit") actions.visit(routeOf(String(event.data.hash)));
});
addEventListener("online", () => tabs.nudge());
addEventListener("offline", () => store.set({ connection: "offline" }));
addEventListener("hashchange", () => {
  takeHash();
  const { wide: isWide, panelOpen, route } = store.state;
  if (isWide && !panelOpen && route.view !== "chat") store.set({ panelOpen: true }); // a link led there
});
addEventListener("pagehide", () => {
  keepDrafts(store.state, { ...store.state, draft: "\0" });
});
addEventListener("pageshow", (event) => {
  if (event.persisted) void session.load(); // back from the browser's cache, long after
});
wide.addEventListener("change", () => store.set({ wide: wide.matches }));
touch.addEventListener("change", () => store.set({ touch: touch.matches }));
tools.listen();
keepAboveKeyboard();

document.addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest("[data-copy]") : null;
  if (button) void copyFrom(button);
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing || event.defaultPrevented) return;
  if (isCovered()) return; // the browser closes what lies over the page
  const { route, confirming, wide: isWide } = store.state;
  const up = upFrom(store.state);
  if (confirming === "note") actions.memory.keepTyping();
  else if (confirming.startsWith("backlog ")) actions.memory.keepItem();
  else if (confirming) actions.confirmRemoval("");
  else if (route.view === "search" && route.q) actions.search.clear();
  else if (store.state.panelFull && !typing(event)) actions.setFull(false);
  else if (up && !typing(event)) actions.go(up);
  else if (route.view !== "chat" && !isWide) actions.go({ view: "chat" });
});

document.addEventListener("keydown", (event) => {
  if (!isFindKey(event, store.state)) return;
  event.preventDefault();
  actions.cards.startFinding();
});

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
    const route = routeOf(location.hash);
    return store.set({ route, panelFull: store.state.panelFull && route.view !== "chat" });
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
  applyWidth(keptWidth(readPref("panelWidth")));
  await loadLanguage(language);
  const unsent = readOutbox();
  store.set({
    language,
    theme,
    wide: wide.matches,
    touch: touch.matches,
    panelOpen: readPref("panel") !== "closed",
    panelWidth: keptWidth(readPref("panelWidth")),
    notify: notifier.standing,
    install: isSecureContext ? store.state.install : "insecure",
    chainListed: readPref("chain") === "list",
    day: { ...store.state.day, listed: readPref("day") === "list" },
    draft: readPref("draft") ?? "",
    files: filesFrom(readPref("files")),
    composing: readComposing(),
    outbox: unsent.map((item) => ({ ...item, state: "failed", error: t("delivery.reloaded") })),
    now: Date.now(),
  });
  if (loginCode(location.hash)) return takeHash();
  store.set({ route: routeOf(location.hash) });
  return await session.load();
}

app.register();
void begin();
