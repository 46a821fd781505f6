/** What is remembered: the files, and a search through them and all that was said and done. */

import { html, icon, live, nothing, repeat } from "../core/html.js";
import { language, t, tn } from "../core/i18n.js";
import { GROUPS, LONG_TERM, groupsOf, piecesOf, placeOfHit } from "./memory.js";
import { hashOf } from "../core/route.js";
import { dateName, dayKey, fileSize, monthName } from "../core/time.js";
import { button, emptyState, failedView, iconButton, loading } from "../ui/parts.js";
import { holdBackCandidates, onSubmit, since, taskTitle, word } from "../ui/parts.js";

/** Of a group with many files, the first are shown until more are asked for. */
const SHOWN = 30;

/** @param {State} state @param {Actions} act */
export function memoryView(state, act) {
  const asks = Boolean(state.memory.query.trim());
  return html`<h2 class="sr-only" tabindex="-1" data-focus>${t("nav.memory")}</h2>
    ${searchField(state, act)} ${asks ? foundView(state, act) : listView(state, act)}`;
}

// --- looking for something

/** @param {State} state @param {Actions} act */
function searchField({ memory: { query } }, act) {
  const submit = onSubmit(() => act.memory.search());
  return html`<form class="search" role="search" @submit=${submit}>
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
      @input=${(/** @type {any} */ event) => act.memory.type(event.target.value)}
      @keydown=${(/** @type {KeyboardEvent} */ event) => onKey(event, query, act)}
    />
    ${
      query
        ? iconButton("x", t("memory.clear"), () => act.memory.clear())
        : html`<kbd aria-hidden="true">/</kbd>`
    }
  </form>`;
}

/** @param {KeyboardEvent} event @param {string} query @param {Actions} act */
function onKey(event, query, act) {
  holdBackCandidates(event);
  const picks = event.isComposing || event.keyCode === 229;
  if (picks || event.key !== "Escape" || !query) return;
  event.preventDefault();
  act.memory.clear();
}

/** @param {State} state @param {Actions} act */
function foundView(state, act) {
  const { state: stage, hits } = state.memory.search;
  const none = stage === "ready" && !hits.length ? t("memory.nothing") : "";
  const count = hits.length && stage !== "failed" ? tn("memory.found", hits.length) : none;
  return html`<p class=${hits.length ? "found-count" : "sr-only"} role="status">${count}</p>
    ${foundList(state, act)}`;
}

/** @param {State} state @param {Actions} act */
function foundList(state, act) {
  const { search } = state.memory;
  const { hits } = search;
  if (search.state === "failed") {
    return failedView(() => act.memory.search(), search.error, t("memory.searchFailed"));
  }
  if (search.state !== "ready" && !hits.length) return loading(t("memory.searching"));
  if (!hits.length) return emptyState(t("memory.nothing"), t("memory.nothingText"));
  const busy = search.state === "asking";
  return html`${search.fallback ? html`<p class="foot-note">${t("memory.fallback", { why: search.fallback })}</p>` : nothing}
    <ul class="found ${busy ? "is-busy" : ""}" aria-busy=${busy ? "true" : "false"}>
      ${hits.map((hit) => hitView(hit, state, act))}
    </ul>`;
}

/** @param {SearchHit} hit @param {State} state @param {Actions} act */
function hitView(hit, state, act) {
  const place = placeOfHit(hit);
  const inside = html`<span class="hit-head">${headOf(hit, state)}</span>
    <span class="hit-text"
      >${piecesOf(hit.snippet, hit.marks).map((piece) =>
        piece.marked ? html`<mark>${piece.text}</mark>` : piece.text,
      )}</span
    >`;
  return html`<li class="hit" data-note="${hit.source}:${hit.line}">
    ${opener(hit, place, inside, state, act)}
  </li>`;
}

/**
 * @param {SearchHit} hit
 * @param {ReturnType<typeof placeOfHit>} place
 * @param {unknown} inside
 * @param {State} state
 * @param {Actions} act
 */
function opener(hit, place, inside, state, act) {
  if (!place) return html`<div class="hit-link">${inside}</div>`;
  if ("view" in place) return html`<a class="hit-link" href=${hashOf(place)}>${inside}</a>`;
  const { message } = place;
  return html`<button
    type="button"
    class="hit-link"
    ?disabled=${Boolean(state.pending[message])}
    @click=${() => act.memory.openMessage(message, hit.day)}
  >
    ${inside}
  </button>`;
}

/** @param {SearchHit} hit @param {State} state  Where it stands, when, and who said it. */
function headOf(hit, state) {
  const said = hit.role ? word("memory.role", hit.role) : "";
  const day = hit.day ? dayWords(hit.day, state) : "";
  const file = hit.kind === "transcript" || hit.kind === "result" ? "" : hit.source;
  const name = nameOf(hit, state);
  return html`${icon(SIGNS[hit.kind] ?? "note")}<span class="hit-name">${name}</span> ${[
      day,
      said,
    ].map((text) =>
      text && text !== name ? html`<span class="hit-about">${text}</span>` : nothing,
    )}
    ${file && file !== name ? html`<span class="hit-source">${file}</span>` : nothing}`;
}

/** @type {Record<SearchHit["kind"], string>} */
const SIGNS = {
  memory: "note",
  summary: "list",
  docs: "book",
  transcript: "chat",
  result: "tasks",
};

/** @param {SearchHit} hit @param {State} state */
function nameOf({ source, kind, taskId }, state) {
  const task = taskId ? state.tasks[taskId] : undefined;
  if (task) return taskTitle(task);
  const file = state.memory.files.find((one) => one.path === source);
  return file ? fileTitle(file, state) : word("memory.kind", kind);
}

/** @param {string} day @param {State} state */
export function dayWords(day, { now, zone }) {
  return dateName(day, dayKey(now, zone || undefined), language());
}

// --- what there is

/** @param {State} state @param {Actions} act */
function listView(state, act) {
  const { load, files } = state.memory;
  if (load === "failed") return failedView(() => act.keepers.memory.list.load());
  if (load !== "ready") return loading(t("memory.loading"));
  const groups = groupsOf(files);
  const bare = files.every((file) => file.kind === "docs");
  return html`<div class="memory-actions">
      ${backlogLink(state)}
      <a class="button small" href="#/memory/new">${icon("plus")}${t("memory.new")}</a>
    </div>
    ${bare ? emptyState(t("memory.empty"), t("memory.emptyText")) : nothing}
    ${GROUPS.map((name) => groupView(name, groups[name], state, act))}
    ${groups.longTerm.length || bare ? nothing : longTermLink()} ${indexView(state)}`;
}

/** @param {State} state */
function backlogLink({ backlog }) {
  const open = backlog.items.filter((item) => !item.done).length;
  return html`<a class="button small" href="#/backlog"
    >${icon("tasks")}${t("backlog.title")}${
      open ? html`<span class="badge">${tn("backlog.open", open)}</span>` : nothing
    }</a
  >`;
}

function longTermLink() {
  const href = hashOf({ view: "noteEdit", path: LONG_TERM });
  return html`<p class="group-none"><a href=${href}>${t("memory.longTermNew")}</a></p>`;
}

/**
 * @param {(typeof GROUPS)[number]} name
 * @param {MemoryFile[]} files
 * @param {State} state
 * @param {Actions} act
 */
function groupView(name, files, state, act) {
  if (!files.length) return nothing;
  const all = files.length <= SHOWN || state.memory.whole.includes(name);
  return html`<section class="group" data-group=${name}>
    <h3>
      ${t(`memory.group.${name}`)}
      ${name === "longTerm" ? nothing : html`<span class="group-count">${files.length}</span>`}
    </h3>
    <ul class="rows">
      ${repeat(
        all ? files : files.slice(0, SHOWN),
        (/** @type {MemoryFile} */ file) => file.path,
        (/** @type {MemoryFile} */ file) => rowView(file, state),
      )}
    </ul>
    ${
      all
        ? nothing
        : button(t("memory.all", { n: files.length }), () => act.memory.showWhole(name), {
            look: "link",
          })
    }
  </section>`;
}

/** @param {MemoryFile} file @param {State} state */
function rowView(file, state) {
  return html`<li class="row ${file.hidden ? "is-hidden" : ""}" data-note=${file.path}>
    <a
      class="row-link"
      href=${hashOf({ view: "note", path: file.path, line: null })}
      title=${file.path}
    >
      ${icon(FILE_SIGNS[file.kind] ?? "note")}
      <span class="row-main">
        <span class="row-title">${fileTitle(file, state)}</span>
        <span class="row-meta">
          ${aboutFile(file, state)}
          ${file.modifiedAt ? html`<span>${since(file.modifiedAt, state.now)}</span>` : nothing}
          ${file.hidden ? html`<span class="badge">${t("memory.hidden")}</span>` : nothing}
        </span>
      </span>
    </a>
  </li>`;
}

/** @type {Record<MemoryFile["kind"], string>} */
const FILE_SIGNS = { longTerm: "memory", raw: "note", day: "list", month: "list", docs: "book" };

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

/** @param {State} state  How much is searched, and what is amiss with it. */
function indexView({ memory: { index } }) {
  if (!index) return nothing;
  if (index.fallback) {
    return html`<p class="foot-note">${t("memory.fallback", { why: index.fallback })}</p>`;
  }
  if (!index.passages) return nothing;
  return html`<p class="foot-note">${tn("memory.indexed", index.passages)}</p>`;
}

// --- under a reply: what memory its turn was given

/** @param {string} turnId @param {TurnHits} known @param {State} state @param {Actions} act */
export function hitsView(turnId, known, state, act) {
  if (known.load === "failed") {
    const again = () => act.memory.loadHits(turnId);
    return html`<p class="hits-told">
      ${t("hits.failed")} ${button(t("load.again"), again, { sign: "retry", look: "link" })}
    </p>`;
  }
  if (known.load !== "ready") {
    return html`<p class="hits-told" role="status">
      <span class="spinner"></span>${t("hits.loading")}
    </p>`;
  }
  if (!known.hits.length) return html`<p class="hits-told">${t("hits.none")}</p>`;
  return html`<ul class="hits" aria-label=${t("hits.title")}>
    ${known.hits.map((hit) => turnHitView(hit, state))}
  </ul>`;
}

/** @param {TurnHits["hits"][number]} hit @param {State} state */
function turnHitView({ source, text, line, day, kind }, state) {
  const place = placeOfHit({ source, kind: kind ?? "memory", line: line ?? 0 });
  const name = source === LONG_TERM ? t("memory.longTerm") : source;
  const plain = piecesOf(text ?? "", [])
    .map((piece) => piece.text)
    .join("")
    .trim();
  return html`<li>
    <p class="hits-head">
      ${place && "view" in place ? html`<a href=${hashOf(place)}>${name}</a>` : name}
      ${day ? html`<span class="muted">${dayWords(day, state)}</span>` : nothing}
    </p>
    ${plain ? html`<p class="hits-text">${plain}</p>` : nothing}
  </li>`;
}
