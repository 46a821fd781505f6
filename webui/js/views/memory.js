/** What is remembered: the files. */

import { html, icon, nothing, repeat } from "../html.js";
import { language, t, tn } from "../i18n.js";
import { GROUPS, LONG_TERM, groupsOf } from "../memory.js";
import { hashOf } from "../route.js";
import { dateName, dayKey, fileSize, monthName } from "../time.js";
import { emptyState, loading, since } from "./parts.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../types.js").MemoryFile} MemoryFile
 * @typedef {import("../actions.js").Actions} Actions
 */

/** Of a group with many files, the first are shown until more are asked for. */
const SHOWN = 30;

/** @param {State} state @param {Actions} act */
export function memoryView(state, act) {
  return html`<h2 class="sr-only" tabindex="-1" data-focus>${t("nav.memory")}</h2>
    ${searchLink()} ${listView(state, act)}`;
}

/** The search looks through memory first when one comes from here. */
function searchLink() {
  return html`<a class="search-link" href=${hashOf({ view: "search", q: "", kind: "memory" })}
    >${icon("search")}${t("memory.search")}</a
  >`;
}

/** @param {string} day @param {State} state */
export function dayWords(day, { now, zone }) {
  return dateName(day, dayKey(now, zone || undefined), language());
}

/** @param {State} state @param {Actions} act */
function listView(state, act) {
  const { load, files } = state.memory;
  if (load === "failed") {
    const again = html`<button type="button" class="small" @click=${() => act.reloadMemory()}>
      ${icon("retry")}${t("load.again")}
    </button>`;
    return emptyState(t("load.failed"), t("load.unreachable"), again);
  }
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
        : html`<button type="button" class="link" @click=${() => act.memory.showWhole(name)}>
            ${t("memory.all", { n: files.length })}
          </button>`
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
