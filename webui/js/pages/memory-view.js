/** What is remembered: the files, and a search through them and all that was said and done. */

import { html, icon, live, nothing, repeat } from "../core/html.js";
import { language, t, tn } from "../core/i18n.js";
import { hashOf } from "../core/route.js";
import { dateName, dayKey, fileSize, monthName } from "../core/time.js";
import { button, emptyState, failedView, groupView, iconButton, loading, rowMain } from "../ui/parts.js";
import { holdBackCandidates, onSubmit, since, taskTitle, typing, word } from "../ui/parts.js";
import { GROUP_OF, LONG_TERM, piecesOf, placeOfHit } from "./memory.js";

/** Of a group with many files, the first are shown until more are asked for. */
const SHOWN = 30;
const GROUPS = ["longTerm", "days", "summaries", "docs"];
/** @type {Record<string, string>}  Icons of kinds of files and hits. */
const SIGNS = {
  longTerm: "memory",
  day: "list",
  month: "list",
  summary: "list",
  docs: "book",
  transcript: "chat",
  result: "tasks",
};

/** @param {State} state @param {Actions} act */
export function memoryView(state, act) {
  const asks = Boolean(state.memory.query.trim());
  return html`<h2 class="sr-only" tabindex="-1" data-focus>${t("nav.memory")}</h2>
    ${searchField(state, act)} ${asks ? foundView(state, act) : listView(state, act)}`;
}

// --- looking for something

/** @param {State} state @param {Actions} act */
function searchField({ memory: { query } }, { memory }) {
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    holdBackCandidates(event);
    const picks = event.isComposing || event.keyCode === 229;
    if (picks || event.key !== "Escape" || !query) return;
    event.preventDefault();
    memory.clear();
  };
  return html`<form class="search" role="search" @submit=${onSubmit(() => memory.search())}>
    <label class="sr-only" for="memory-search">${t("memory.search")}</label>
    ${icon("search")}
    <input
      id="memory-search"
      dir="auto"
      type="search"
      autocomplete="off"
      spellcheck="false"
      enterkeyhint="search"
      maxlength="1000"
      placeholder=${t("memory.searchHint")}
      aria-keyshortcuts="/"
      .value=${live(query)}
      @input=${typing((text) => memory.type(text))}
      @keydown=${onKey}
    />
    ${query ? iconButton("x", t("memory.clear"), () => memory.clear()) : html`<kbd aria-hidden="true">/</kbd>`}
  </form>`;
}

/** @param {State} state @param {Actions} act */
function foundView(state, act) {
  const { stage, hits } = state.memory;
  const none = stage === "ready" ? t("memory.nothing") : "";
  const count = hits.length ? tn("memory.found", hits.length) : none;
  return html`<p class=${hits.length ? "found-count" : "sr-only"} role="status">${count}</p>
    ${foundList(state, act)}`;
}

/** @param {State} state @param {Actions} act */
function foundList(state, act) {
  const { stage, hits, fallback, error } = state.memory;
  const again = () => act.memory.search();
  if (stage === "failed") return failedView(again, error, t("memory.searchFailed"));
  if (stage !== "ready" && !hits.length) return loading(t("memory.searching"));
  if (!hits.length) return emptyState(t("memory.nothing"), t("memory.nothingText"));
  const busy = stage === "loading";
  return html`${footNote(fallback ? t("memory.fallback", { why: fallback }) : "")}
    <ul class="found ${busy ? "is-busy" : ""}" aria-busy=${busy}>
      ${hits.map((hit) => hitView(hit, state, act))}
    </ul>`;
}

/** @param {string} text */
function footNote(text) {
  return text ? html`<p class="foot-note">${text}</p>` : nothing;
}

/** @param {SearchHit} hit @param {State} state @param {Actions} act */
function hitView(hit, state, act) {
  const inside = html`<span class="hit-head">${headOf(hit, state)}</span>
    <span class="hit-text"
      >${piecesOf(hit.snippet, hit.marks).map((piece) =>
        piece.marked ? html`<mark>${piece.text}</mark>` : piece.text,
      )}</span
    >`;
  return html`<li class="hit" data-note="${hit.source}:${hit.line}">${linkTo(hit, inside, state, act)}</li>`;
}

/** @param {SearchHit} hit @param {unknown} inside @param {State} state @param {Actions} act  To where it stands. */
function linkTo(hit, inside, { pending }, { memory }) {
  const place = placeOfHit(hit);
  if (!place) return html`<div class="hit-link">${inside}</div>`;
  if ("view" in place) return html`<a class="hit-link" href=${hashOf(place)}>${inside}</a>`;
  const { message: id } = place;
  return button(inside, () => memory.openMessage(id, hit.day), { look: "hit-link", off: Boolean(pending[id]) });
}

/** @param {SearchHit} hit @param {State} state  Where it stands, when, and who said it. */
function headOf({ kind, source, taskId, role, day }, state) {
  const task = taskId ? state.tasks[taskId] : undefined;
  const file = state.memory.files.find((one) => one.path === source);
  const known = file ? fileTitle(file, state) : word("memory.kind", kind);
  const name = task ? taskTitle(task) : known;
  const said = [day ? dayWords(day, state) : "", word("memory.role", role)];
  const path = kind === "transcript" || kind === "result" ? name : source;
  return html`${icon(SIGNS[kind] ?? "note")}<span class="hit-name">${name}</span> ${said.map(
      (text) => (text && text !== name ? html`<span class="hit-about">${text}</span>` : nothing),
    )}
    ${path === name ? nothing : html`<span class="hit-source">${path}</span>`}`;
}

/** @param {string} day @param {State} state */
function dayWords(day, { now, zone }) {
  return dateName(day, dayKey(now, zone || undefined), language());
}

// --- what there is

/** @param {State} state @param {Actions} act */
function listView(state, act) {
  const { load, files, index } = state.memory;
  if (load === "failed") return failedView(() => act.memory.list.load());
  if (load !== "ready") return loading(t("memory.loading"));
  const open = state.backlog.items.filter((item) => !item.done).length;
  const bare = files.every((file) => file.kind === "docs");
  const begun = bare || files.some((file) => file.kind === "longTerm");
  const count = index?.passages ? tn("memory.indexed", index.passages) : "";
  const badge = open ? html`<span class="badge">${tn("backlog.open", open)}</span>` : nothing;
  const begin = hashOf({ view: "noteEdit", path: LONG_TERM });
  const link = html`<p class="group-none"><a href=${begin}>${t("memory.longTermNew")}</a></p>`;
  return html`<div class="memory-actions">
      <a class="button small" href="#/backlog">${icon("tasks")}${t("backlog.title")}${badge}</a>
      <a class="button small" href="#/memory/new">${icon("plus")}${t("memory.new")}</a>
    </div>
    ${bare ? emptyState(t("memory.empty"), t("memory.emptyText")) : nothing}
    ${GROUPS.map((name) => filesOf(name, state, act))}
    ${begun ? nothing : link}
    ${footNote(index?.fallback ? t("memory.fallback", { why: index.fallback }) : count)}`;
}

/** @param {string} name @param {State} state @param {Actions} act */
function filesOf(name, state, act) {
  const files = state.memory.files.filter((file) => GROUP_OF[file.kind] === name);
  if (!files.length) return nothing;
  const all = files.length <= SHOWN || state.memory.whole.includes(name);
  const count = name === "longTerm" ? nothing : html`<span class="group-count">${files.length}</span>`;
  const rows = repeat(all ? files : files.slice(0, SHOWN), ({ path }) => path, (file) => rowView(file, state));
  const label = t("memory.all", { n: files.length });
  const more = all ? nothing : button(label, () => act.memory.showWhole(name), { look: "link" });
  return groupView(name, html`${t(`memory.group.${name}`)} ${count}`, rows, more);
}

/** @param {MemoryFile} file @param {State} state */
function rowView(file, state) {
  const { path, kind, hidden, modifiedAt } = file;
  const meta = html`${aboutFile(file, state)}
    ${modifiedAt ? html`<span>${since(modifiedAt, state.now)}</span>` : nothing}
    ${hidden ? html`<span class="badge">${t("memory.hidden")}</span>` : nothing}`;
  return html`<li class="row ${hidden ? "is-hidden" : ""}" data-note=${path}>
    <a class="row-link" href=${hashOf({ view: "note", path, line: null })} title=${path}>
      ${rowMain(icon(SIGNS[kind] ?? "note"), fileTitle(file, state), meta)}
    </a>
  </li>`;
}

/** @param {MemoryFile} file @param {State} state  A day and a month by their names. */
export function fileTitle({ path, kind, title, day }, state) {
  if (path === LONG_TERM) return t("memory.longTerm");
  if (kind === "month" && day) return monthName(day, language());
  return day && title === day ? dayWords(day, state) : title || path;
}

/** @param {MemoryFile} file @param {State} state  Its day, unless that is its name, and its size. */
export function aboutFile(file, state) {
  const { kind, day, size } = file;
  const words = day && kind !== "month" ? dayWords(day, state) : "";
  const said = words === fileTitle(file, state);
  return html`${words && !said ? html`<span>${words}</span>` : nothing}
    <span>${fileSize(size, language())}</span>`;
}

// --- under a reply: what memory its turn was given

/** @param {string} turnId @param {TurnHits} known @param {State} state @param {Actions} act */
export function hitsView(turnId, { load, hits }, state, act) {
  if (load === "failed") return failedView(() => act.memory.hits.load(turnId), t("hits.failed"));
  if (load !== "ready") return loading(t("hits.loading"));
  if (!hits.length) return html`<p class="muted">${t("hits.none")}</p>`;
  return html`<ul class="hits" aria-label=${t("hits.title")}>
    ${hits.map((hit) => turnHitView(hit, state))}
  </ul>`;
}

/** @param {TurnHits["hits"][number]} hit @param {State} state */
function turnHitView({ source, text, line, day, kind }, state) {
  const place = placeOfHit({ source, kind: kind ?? "memory", line: line ?? 0 });
  const name = source === LONG_TERM ? t("memory.longTerm") : source;
  const pieces = piecesOf(text ?? "").map((piece) => piece.text);
  const plain = pieces.join("").trim();
  return html`<li>
    <p class="hits-head">
      ${place && "view" in place ? html`<a href=${hashOf(place)}>${name}</a>` : name}
      ${day ? html`<span class="muted">${dayWords(day, state)}</span>` : nothing}
    </p>
    ${plain ? html`<p class="hits-text">${plain}</p>` : nothing}
  </li>`;
}
