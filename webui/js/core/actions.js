/** What the user can do. Views call these; each ends in a new state or in words about why not. */

import { DetailKeeper } from "../pages/detail.js";
import { EngineActions } from "../pages/engines.js";
import { HomeKeeper } from "../pages/home-keeper.js";
import { JobsKeeper } from "../pages/jobs.js";
import { LifeActions } from "../pages/life.js";
import { MemoryActions } from "../pages/memory-keeper.js";
import { TriggerActions } from "../pages/trigger-keeper.js";
import { UsageKeeper } from "../pages/usage.js";
import { words } from "./api.js";
import { copyText } from "./copy.js";
import { attached, canSend, FileActions } from "./files.js";
import { flash, focusSoon, onceDrawn } from "./focus.js";
import { loadLanguage, t } from "./i18n.js";
import { bytesOf, newId } from "./ids.js";
import { applyTheme, writePref } from "./prefs.js";
import { addressOf, hashOf } from "./route.js";
import { live } from "./select.js";
import { dayKey, ownZone } from "./time.js";

/** A message that could not be handed over is tried again after these, then given back. */
const RETRY_MS = [700, 2000];
const NOTICE_MS = 7000;
const ERROR_MS = 14_000;
const MAX_TEXT = 200_000;

export class Actions {
  focus = focusSoon;
  zone = ownZone;
  /** @type {import("./scroll.js").ScrollKeeper | null} of the conversation, while it is drawn */
  scroll = null;
  /** @type {Promise<void>} */
  olderLoaded = Promise.resolve();

  /** @param {Store} store @param {Api} api @param {import("./session.js").Session} session */
  constructor(store, api, session) {
    this.store = store;
    this.api = api;
    this.session = session;
    /** What keeps each page fresh. */
    this.keepers = {
      detail: new DetailKeeper(store, api),
      jobs: new JobsKeeper(store, api),
      usage: new UsageKeeper(store, api),
      home: new HomeKeeper(store, api),
    };
    this.triggers = new TriggerActions(store, api, this);
    this.memory = new MemoryActions(store, api, this);
    this.files = new FileActions(store, api, this);
    this.engines = new EngineActions(store, api, this);
    this.life = new LifeActions(store, api, this);
  }

  // --- talking

  send() {
    const { draft, files } = this.store.state;
    const text = draft.trim();
    if (!canSend(this.store.state)) return files.length ? this.notify(t("files.wait")) : undefined;
    if (text.length > MAX_TEXT) return this.notify(t("send.tooLong"), "error");
    this.store.set({ draft: "", files: [] });
    this.queueOut({ kind: "input", text, files: files.flatMap(({ sent }) => sent ?? []) });
  }

  /** @param {string} text */
  answer(text) {
    const question = this.store.state.question;
    if (!question || !text.trim()) return;
    this.store.set({ answering: { busy: true, error: "" } });
    this.queueOut({ kind: "answer", text: text.trim(), questionId: question.questionId });
  }

  /** @private @param {Pick<OutboxItem, "kind" | "text" | "questionId" | "files">} what @param {string} [id] */
  queueOut(what, id = newId("msg")) {
    const createdAt = new Date(this.store.state.skewMs + Date.now()).toISOString();
    /** @type {OutboxItem} */
    const item = { ...what, id, createdAt, state: "sending" };
    this.store.add("outbox", item);
    this.scroll?.toBottom();
    void this.deliver(item);
  }

  /** @param {string} id the same id again: the server keeps it once */
  resend(id) {
    const item = this.store.state.outbox.find((one) => one.id === id);
    if (!item) return;
    this.store.change("outbox", id, { state: "sending", error: "" });
    void this.deliver(item);
  }

  /** @param {Message} message  One that was not sent. */
  takeBack({ id, text, files }) {
    this.store.remove("outbox", id);
    this.editText(text, false, files);
  }

  /** @param {string} id */
  discard(id) {
    this.store.remove("outbox", id);
    this.focusComposer();
  }

  /** @private @param {OutboxItem} item @param {number[]} [waits] before the tries @returns {Promise<void>} */
  async deliver(item, [wait, ...waits] = RETRY_MS) {
    try {
      await this.handOver(item);
      this.store.change("outbox", item.id, { state: "accepted" });
    } catch (error) {
      if (/** @type {any} */ (error)?.passing && wait) {
        await new Promise((resolve) => setTimeout(resolve, wait));
        return this.deliver(item, waits);
      }
      this.undelivered(item, error);
    }
    if (item.kind === "answer") this.store.set({ answering: { busy: false, error: "" } });
  }

  /** @private @param {OutboxItem} item */
  handOver({ kind, id, text, questionId, files = [] }) {
    if (kind === "answer" && questionId) return this.api.answer({ id, questionId, text });
    const ids = files.map((file) => file.id);
    return this.api.input({ id, text, files: ids, timezone: ownZone(), locale: navigator.language });
  }

  /** @private @param {OutboxItem} item @param {any} error */
  undelivered(item, error) {
    const closed = item.kind === "answer" && error?.status === 409;
    const kind = closed ? "input" : item.kind; // sent again, it goes as a message like any other
    this.store.change("outbox", item.id, { state: "failed", kind, error: this.why(error) });
  }

  /** @returns {Promise<void>} when they are there, or could not be had */
  loadOlder() {
    const { before, older } = this.store.state;
    if (before && older !== "loading") this.olderLoaded = this.fetchOlder(before);
    return this.olderLoaded;
  }

  /** @private @param {string} before */
  async fetchOlder(before) {
    this.store.set({ older: "loading" });
    try {
      const page = await this.api.older(before);
      this.store.dispatch({ type: "olderLoaded", ...page });
    } catch (error) {
      this.store.set({ older: "failed" });
      this.onError(error);
    }
  }

  // --- with a message

  /** @param {string} id  Show it in the conversation. */
  showMessage(id) {
    if (!this.store.state.wide) this.go({ view: "chat" });
    onceDrawn(`#${CSS.escape(`m-${id}`)}`, (element) => {
      this.scroll?.show(element);
      flash(element, "is-shown", 2000);
    });
  }

  /** @param {string} text */
  async copyMessage(text) {
    const done = await copyText(text);
    this.notify(t(done ? "code.copied" : "code.notCopied"), done ? "info" : "error");
  }

  /** @param {string} text  Put it as a quotation above what is being written. */
  quote(text) {
    const quoted = text.trim().replace(/^/gm, "> ");
    this.editText(`${quoted}\n\n${this.store.state.draft}`, true);
  }

  /** @param {string} text @param {FileRef[]} [files] */
  sendAgain(text, files) {
    this.queueOut({ kind: "input", text, files });
  }

  /** @param {string} text of an item of the backlog; on one day it is sent once, however often it is pressed */
  giveItem(text) {
    const { now, zone, messages, inbox, outbox } = this.store.state;
    const day = Date.parse(dayKey(now, zone || undefined));
    const id = newId("msg", day, bytesOf(text));
    if (outbox.some((one) => one.id === id)) this.resend(id);
    else if (![...messages, ...inbox].some((one) => one.id === id)) this.queueOut({ kind: "input", text }, id);
    this.go({ view: "chat" });
  }

  /** @param {string} text @param {boolean} [instead] of what is being written, not above it @param {FileRef[]} [more] */
  editText(text, instead = false, more = []) {
    const { draft, files } = this.store.state;
    const whole = draft && !instead ? `${text}\n${draft}` : text;
    this.store.set({ draft: whole, files: [...files, ...more.map(attached)] });
    this.focusComposer();
  }

  // --- tasks and triggers

  /** End the reply that is being made, and nothing else: its message tells it. */
  async stop() {
    const turnId = live(this.store.state)?.turnId;
    if (turnId && !(await this.order(turnId, "cancel", false))) this.notify(t("stop.not"), "error");
  }

  /** @param {string} id  A task that runs beside the reply. */
  async stopTask(id) {
    this.store.set({ confirming: "" });
    await this.order(id, "cancel");
  }

  /**
   * Cancel or retry a task.
   *
   * @param {string} id
   * @param {"cancel" | "retry"} what
   * @param {boolean} [tell] say in words what came of it
   * @param {boolean} [open] go to what a retry makes
   * @returns {Promise<boolean>} whether it was accepted
   */
  async order(id, what, tell = true, open = true) {
    return this.ordered(id, what, tell, async () => {
      const answer = await this.api.order(id, what, newId("cmd"));
      const { resultId: made } = answer;
      if (open && what === "retry" && made) this.go({ view: "task", id: made });
      return answer;
    });
  }

  /** @param {Job} job @param {"cancel" | "retry"} what  Cancel all of it that goes on; retry what failed. */
  async orderJob({ steps, taskId }, what) {
    const live = steps.filter(({ state }) => ["queued", "running", "asking"].includes(state));
    const others = what === "cancel" ? live.filter(({ id }) => id !== taskId) : [];
    for (const { id } of others) await this.order(id, what, false);
    return this.order(taskId, what, true, false);
  }

  /** @param {{q?: string, chip?: string}} values  What the list of jobs shows. */
  filterJobs(values) {
    this.store.patch("list", { ...values, load: "idle", ids: [], before: null });
  }

  moreJobs() {
    void this.keepers.jobs.page.load(this.store.state.list);
  }

  /** @param {string} id  Of a trigger: its runs are shown, or no more. */
  toggleRuns(id) {
    const open = !this.store.state.runs[id]?.open;
    this.store.patch("runs", { [id]: { open, jobs: [], before: null } });
    if (open) void this.moreRuns(id);
  }

  /** @param {string} id */
  async moreRuns(id) {
    const { jobs, before } = this.store.state.runs[id];
    try {
      const page = await this.api.jobs({ trigger: id, before, limit: "20" });
      const { open } = this.store.state.runs[id];
      this.store.patch("runs", { [id]: { open, jobs: [...jobs, ...page.jobs], before: page.before } });
    } catch (error) {
      this.onError(error);
    }
  }

  /** @param {string} id @param {"pause" | "resume" | "run"} what */
  async orderTrigger(id, what) {
    return this.ordered(id, what, true, () => this.api.trigger(id, what));
  }

  /** @param {string} id */
  async removeTrigger(id) {
    return this.ordered(id, "remove", true, () => this.api.removeTrigger(id));
  }

  /**
   * Have a reminder told again.
   *
   * @param {string} id of the task that told it
   * @param {string} when in the words that the server reads
   */
  async snooze(id, when) {
    const body = { id: newId("trig"), when, timezone: ownZone() };
    return this.ordered(id, "snooze", true, () => this.api.snooze(id, body));
  }

  /** @param {string} name  What is to serve from now on. */
  async useEngine(name) {
    return this.ordered("engine", "engine", true, () => this.api.orderEngines({ use: name, id: newId("cmd") }));
  }

  /** @param {string} name  What is to be tried now, as it may serve again. */
  async tryEngine(name) {
    return this.ordered("engine", "try", true, () => this.api.tryEngine(name, newId("cmd")));
  }

  /**
   * @param {string} id
   * @param {string} what
   * @param {boolean} tell
   * @param {() => Promise<any>} act
   */
  async ordered(id, what, tell, act) {
    this.store.patch("pending", { [id]: what });
    try {
      const answer = await act();
      const ok = answer?.ok !== false;
      if (tell && !ok) this.notify(words(answer), "error");
      else if (tell) this.notify(t(answer?.command ? "order.accepted" : `order.${what}`));
      return ok;
    } catch (error) {
      if (tell) this.onError(error);
      return false;
    } finally {
      this.store.patch("pending", { [id]: "" });
    }
  }

  // --- the page

  focusComposer() {
    setTimeout(() => document.getElementById("composer")?.focus());
  }

  /** @param {string} confirming  Before something is lost, one is asked. */
  ask(confirming) {
    this.store.set({ confirming });
    this.focus("#keep");
  }

  /** What was asked about stays as it is. */
  keep() {
    const [kind] = this.store.state.confirming.split(" ");
    this.store.set({ confirming: "" });
    const from = { note: "#note-text", backlog: "#backlog-item" }[kind];
    if (from) this.focus(from);
  }

  /** Wherever one is: the field that searches everything. */
  goSearch() {
    const { wide, panel, route } = this.store.state;
    if (wide && panel === "closed") this.layPanel("side");
    if (route.view !== "memory") this.go({ view: "memory" });
    this.focus("#memory-search");
  }

  /** @param {Route} route */
  go(route) {
    location.hash = addressOf(route, this.store.state);
  }

  /** @param {{q: string, chip: string}} asked  What is looked for here, as the address says it. */
  lookFor({ q, chip }) {
    const { route, list, memory } = this.store.state;
    if (route.view === "memory" && q !== memory.query) this.memory.type(q);
    if (route.view === "tasks" && (q !== list.q || chip !== list.chip)) this.filterJobs({ q, chip });
  }

  // --- the command palette, and the list of keys

  openPalette() {
    this.store.set({ palette: { query: "", at: 0 } });
    showDialog("palette");
  }

  /** @param {import("./palette.js").PaletteItem} item */
  choose({ go, act }) {
    const query = this.store.state.palette?.query.trim() ?? "";
    /** @type {HTMLDialogElement | null} */ (document.querySelector("#palette"))?.close();
    if (go) this.go(go);
    else if (act === "theme") this.setTheme(this.store.state.theme === "dark" ? "light" : "dark");
    else if (act === "panel") this.layPanel(this.store.state.panel === "side" ? "closed" : "side");
    else if (act === "keys") this.showKeys();
    else if (act === "search") {
      this.memory.type(query);
      this.memory.search();
      this.goSearch();
    }
  }

  showKeys() {
    showDialog("keys");
  }

  /** Ask the browser to show what is urgent while the page is hidden, or no more. */
  async toggleNotifying() {
    const wanted = !this.store.state.notifying;
    const granted = wanted && (await Notification.requestPermission()) === "granted";
    if (wanted && !granted) this.notify(t("attention.denied"), "error");
    this.store.set({ notifying: granted });
    writePref("notify", granted ? "on" : "");
  }

  /** @param {State["panel"]} panel */
  layPanel(panel) {
    const { roomy, route } = this.store.state;
    this.store.set({ panel, wide: roomy && panel !== "page" });
    writePref("panel", panel);
    if (panel === "page" && route.view === "chat") this.go({ view: "home" });
  }

  /** @param {"system" | "light" | "dark"} theme */
  setTheme(theme) {
    this.store.set({ theme });
    applyTheme(theme);
    writePref("theme", theme === "system" ? "" : theme);
  }

  /** @param {"en" | "zh"} language */
  async setLanguage(language) {
    try {
      await loadLanguage(language);
    } catch {
      return this.notify(t("load.unreachable"), "error");
    }
    this.store.set({ language });
    writePref("language", language);
    for (const button of document.querySelectorAll("[data-copy=code]")) {
      button.textContent = t("code.copy");
    }
  }

  signOut() {
    this.session.signOutHere();
  }

  async logout() {
    try {
      await this.api.logout();
      this.signOut();
    } catch (error) {
      this.onError(error);
    }
  }

  /** @param {string} text @param {"info" | "error"} [tone] */
  notify(text, tone = "info") {
    const id = newId("note");
    this.store.set({ notices: [...this.store.state.notices.slice(-2), { id, tone, text }] });
    setTimeout(() => this.dismiss(id), tone === "error" ? ERROR_MS : NOTICE_MS);
  }

  /** @param {string} id */
  dismiss(id) {
    this.store.remove("notices", id);
  }

  /** @param {any} error @returns {string} why something failed; who is no longer known signs in */
  why(error) {
    if (error?.status === 401) this.signOut();
    return words(error);
  }

  /** @private @param {any} error */
  onError(error) {
    if (error?.status === 401) return this.signOut();
    this.notify(words(error), "error");
  }
}

/** @param {string} id */
function showDialog(id) {
  const dialog = /** @type {HTMLDialogElement | null} */ (document.getElementById(id));
  if (dialog && !dialog.open) dialog.showModal();
}
