/** What is looked for: in all that was said, remembered and done. */

import { html, icon, live, nothing } from "../html.js";
import { t, tn } from "../i18n.js";
import { LONG_TERM, piecesOf, placeOfHit } from "../memory.js";
import { KINDS, hashOf } from "../route.js";
import { countOf, isMore } from "../search-state.js";
import { dayWords, fileTitle } from "./memory.js";
import { emptyState, loading, stateIcon, word } from "./parts.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../state-types.js").SearchKind} SearchKind
 * @typedef {import("../types.js").SearchHit} Hit
 * @typedef {import("../actions.js").Actions} Actions
 */

/** @param {State} state @param {Actions} act */
export function searchView(state, act) {
  const { query } = state.search;
  return html`<h2 class="sr-only">${t("search.title")}</h2>
    ${fieldView(query, act)}
    ${
      query.trim()
        ? html`${kindsView(state)} ${foundView(state, act)}`
        : emptyState(t("search.empty"), t("search.emptyText"))
    }`;
}

/** @param {string} query @param {Actions} act */
function fieldView(query, act) {
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    act.search.now();
  };
  return html`<form class="search" role="search" @submit=${submit}>
    <label class="sr-only" for="search-field">${t("search.label")}</label>
    ${icon("search")}
    <input
      id="search-field"
      type="search"
      autocomplete="off"
      spellcheck="false"
      enterkeyhint="search"
      maxlength="1000"
      data-focus
      placeholder=${t("search.hint")}
      aria-keyshortcuts="/"
      .value=${live(query)}
      @input=${(/** @type {any} */ event) => act.search.type(event.target.value)}
      @keydown=${(/** @type {KeyboardEvent} */ event) => onKey(event, query, act)}
    />
    ${
      query
        ? html`<button
            type="button"
            class="icon-button small"
            aria-label=${t("search.clear")}
            title=${t("search.clear")}
            @click=${() => act.search.clear()}
          >
            ${icon("x")}
          </button>`
        : html`<kbd aria-hidden="true">/</kbd>`
    }
  </form>`;
}

/** @param {KeyboardEvent} event @param {string} query @param {Actions} act  Enter may pick a candidate. */
function onKey(event, query, act) {
  if (event.isComposing || event.keyCode === 229) {
    if (event.key === "Enter") event.preventDefault();
    return;
  }
  const first = event.key === "ArrowDown" && document.querySelector(".found .hit-link");
  if (first instanceof HTMLElement) {
    event.preventDefault();
    first.focus();
  }
  if (event.key !== "Escape" || !query) return;
  event.preventDefault();
  act.search.clear();
}

/** @param {State} state  Of what kind; each with its number once that is known. */
function kindsView({ search, route }) {
  const chosen = route.view === "search" ? route.kind : search.kind;
  const known = search.state === "ready" || search.state === "asking";
  return html`<nav class="kinds" aria-label=${t("search.kinds")}>
    ${KINDS.map((kind) => {
      const href = hashOf({ view: "search", q: search.query.trim(), kind });
      const number = countOf(search, kind);
      return html`<a href=${href} aria-current=${kind === chosen ? "true" : "false"}
        >${t(`search.kind.${kind}`)}${
          known && search.asked
            ? html` <span class="group-count">${number}${isMore(search, kind) ? "+" : ""}</span>`
            : nothing
        }</a
      >`;
    })}
  </nav>`;
}

/** @param {State} state @param {Actions} act */
function foundView(state, act) {
  const { search } = state;
  const { hits } = search;
  if (search.state === "failed") {
    const again = html`<button type="button" class="small" @click=${() => act.search.now()}>
      ${icon("retry")}${t("load.again")}
    </button>`;
    return emptyState(t("search.failed"), search.error, again);
  }
  if (search.state !== "ready" && !hits.length) return loading(t("search.searching"));
  const told = hits.length ? tn("search.found", hits.length) : t("search.nothing");
  const said = html`<p class="sr-only" role="status">${told}</p>`;
  if (!hits.length) return html`${said} ${emptyState(told, t("search.nothingText"), elsewhere(state))}`;
  const busy = search.state === "asking";
  return html`${said}
    ${search.fallback ? html`<p class="foot-note">${t("memory.fallback", { why: search.fallback })}</p>` : nothing}
    <ul class="found ${busy ? "is-busy" : ""}" aria-busy=${busy ? "true" : "false"}>
      ${hits.map((hit) => hitView(hit, state, act))}
    </ul>`;
}

/** @param {State} state  Where nothing of one kind was found, there may be something of another. */
function elsewhere({ search }) {
  const number = countOf(search, "all");
  if (search.kind === "all" || !number) return nothing;
  const href = hashOf({ view: "search", q: search.query.trim(), kind: "all" });
  return html`<a class="button small" href=${href}>${tn("search.elsewhere", number)}</a>`;
}

/** @param {Hit} hit @param {State} state @param {Actions} act */
function hitView(hit, state, act) {
  const place = placeOfHit(hit);
  const text = piecesOf(hit.snippet, hit.marks).map((piece) =>
    piece.marked ? html`<mark>${piece.text}</mark>` : piece.text,
  );
  const named = hit.kind === "work" || hit.kind === "trigger"; // found by its name
  const inside = html`<span class="hit-head">${headOf(hit, state, named ? text : null)}</span> ${
      named ? nothing : html`<span class="hit-text">${text}</span>`
    }`;
  return html`<li class="hit" data-note="${hit.source}:${hit.line}">
    ${opener(hit, place, inside, state, act)}
  </li>`;
}

/**
 * @param {Hit} hit
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
    @click=${() => act.search.openMessage(message, hit.day)}
  >
    ${inside}
  </button>`;
}

/** @param {Hit} hit @param {State} state @param {unknown} found its name, marked  Where it stands, when, and who said it. */
function headOf(hit, state, found) {
  const isSaid = hit.kind === "transcript";
  const said = found ? word("memory.kind", hit.kind) : isSaid ? "" : word("memory.role", hit.role);
  const day = hit.day ? dayWords(hit.day, state) : "";
  const file = NO_FILES.has(hit.kind) ? "" : hit.source;
  const name = nameOf(hit, state);
  const sign = hit.state ? stateIcon(hit.state) : icon(SIGNS[hit.kind] ?? "note");
  return html`${sign}<span class="hit-name">${found ?? name}</span> ${[day, said].map((text) =>
      text && text !== name ? html`<span class="hit-about">${text}</span>` : nothing,
    )}
    ${file && file !== name ? html`<span class="hit-source">${file}</span>` : nothing}`;
}

/** @type {Record<Hit["kind"], string>} */
const SIGNS = {
  memory: "note",
  summary: "list",
  docs: "book",
  transcript: "chat",
  result: "tasks",
  work: "tasks",
  trigger: "trigger",
};

const NO_FILES = new Set(["transcript", "result", "work", "trigger"]);

/** @param {Hit} hit @param {State} state */
function nameOf({ source, kind, title, role }, state) {
  if (title) return title;
  if (kind === "transcript" && role) return word("search.by", role);
  if (source === LONG_TERM) return t("memory.longTerm"); // also before the files are listed
  const file = state.memory.files.find((one) => one.path === source);
  return file ? fileTitle(file, state) : word("memory.kind", kind);
}
