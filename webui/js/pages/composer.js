/** Where one types, and the line below it that says who answers. */

import { html, icon, live, nothing } from "../core/html.js";
import { t, tn } from "../core/i18n.js";
import { sends } from "../core/typing.js";
import { word } from "../ui/parts.js";

/** @param {State} state @param {Actions} act */
export function composerView(state, act) {
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    act.send();
  };
  return html`<form class="composer" @submit=${submit}>
      <label class="sr-only" for="composer">${t("composer.label")}</label>
      <textarea
        id="composer"
        rows="1"
        dir="auto"
        enterkeyhint=${touch.matches ? "enter" : "send"}
        placeholder=${t("composer.placeholder")}
        aria-describedby="composer-hint"
        .value=${live(state.draft)}
        @input=${(/** @type {any} */ event) => act.store.set({ draft: event.target.value })}
        @keydown=${(/** @type {KeyboardEvent} */ event) => onKey(event, act)}
      ></textarea>
      <button
        type="submit"
        class="send"
        aria-label=${t("composer.send")}
        title=${t("composer.send")}
        ?disabled=${!state.draft.trim()}
      >
        ${icon("send")}
      </button>
    </form>
    <div class="foot">
      ${enginesView(state)}
      <span class="keys" id="composer-hint">${t("composer.hint")}</span>
    </div>`;
}

/** Keys on a screen: a phone, a tablet. */
const touch = matchMedia("(hover: none) and (pointer: coarse)");

/** @param {KeyboardEvent} event @param {Actions} act */
function onKey(event, act) {
  if (!sends(event, touch.matches)) return;
  event.preventDefault();
  act.send();
}

const SEATS = ["teller", "planner", "standard", "specialist", "deferred", "command"];

/**
 * What serves what: the seats that are served alike stand together, those that matter most first.
 *
 * @param {Record<string, EngineStatus>} engines
 * @returns {[string[], EngineStatus][]}
 */
function grouped(engines) {
  const place = (/** @type {string} */ seat) => SEATS.indexOf(seat) + 1 || SEATS.length + 1;
  const seats = Object.keys(engines).sort((a, b) => place(a) - place(b) || a.localeCompare(b));
  /** @type {Map<string, [string[], EngineStatus]>} */
  const groups = new Map();
  for (const seat of seats) {
    const key = JSON.stringify([engines[seat].engine, why(engines[seat])]);
    if (!groups.has(key)) groups.set(key, [[], engines[seat]]);
    groups.get(key)?.[0].push(seat);
  }
  return [...groups.values()];
}

/** @param {EngineStatus | undefined} engine */
function why(engine) {
  const reason = engine?.reason ?? "";
  if (engine?.state !== "waiting") return reason;
  return reason ? `${t("state.waiting")}: ${reason}` : t("state.waiting");
}

/** @param {string[]} seats @param {EngineStatus} engine */
function engineRow(seats, engine) {
  return html`<div>
    <dt>${seats.map((seat) => word("seat", seat)).join(t("list.and"))}</dt>
    <dd>
      <strong>${engine.engine}</strong>
      ${why(engine) ? html`<span class="engine-why">${why(engine)}</span>` : nothing}
    </dd>
  </div>`;
}

/** @param {State} state */
function enginesView(state) {
  const engines = state.status?.engines;
  if (!engines) return html`<span></span>`;
  const teller = engines.teller;
  const quarantined = state.status?.quarantined ?? 0;
  const plain = teller?.engine === "builtin";
  const basic = teller?.engine === "local" ? t("engines.basic") : "";
  const beside = plain ? t("engines.noModel") : [basic, why(teller)].filter(Boolean).join(" · ");
  return html`<button type="button" class="engines" popovertarget="engines-box">
      <span
        >${t("engines.by")}
        <strong>${teller?.engine ?? t("engines.none")}</strong>${beside ? ` — ${beside}` : ""}</span
      >
    </button>
    <div id="engines-box" class="popover engines-box" popover aria-label=${t("engines.title")}>
      <h2>${t("engines.title")}</h2>
      <dl>${grouped(engines).map(([seats, engine]) => engineRow(seats, engine))}</dl>
      ${plain ? html`<p>${t("engines.hint")}</p>` : nothing}
      ${basic ? html`<p>${t("engines.basicHint")}</p>` : nothing}
      ${quarantined ? html`<p>${tn("engines.quarantined", quarantined)}</p>` : nothing}
      <p class="muted">${t("engines.check")} <code>mimikit doctor</code></p>
    </div>`;
}
