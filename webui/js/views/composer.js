/** Where one types, and the line below it that says who answers. */

import { canSend } from "../file-state.js";
import { html, icon, live, nothing } from "../html.js";
import { t, tn } from "../i18n.js";
import { answersNow } from "../message-state.js";
import { shown } from "../shown.js";
import { attachButton, attachmentsView } from "./attachments.js";
import { reasonWords, word } from "./parts.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../actions.js").Actions} Actions
 * @typedef {import("../types.js").SeatEngine} SeatEngine
 */

/** @param {State} state @param {Actions} act */
export function composerView(state, act) {
  const submit = (/** @type {any} */ event) => {
    event.preventDefault();
    sendFrom(event.currentTarget.elements.composer, act);
  };
  const answers = answersNow(state);
  const send = t(answers ? "question.send" : "composer.send");
  return html`<form class="composer ${answers ? "is-answer" : ""}" @submit=${submit}>
      ${aboutView(state, act)} ${attachmentsView(state, act)}
      <div class="composer-row">
        ${answers ? nothing : attachButton(act)}
        <label class="sr-only" for="composer"
          >${t(answers ? "question.label" : "composer.label")}</label
        >
        <textarea
          id="composer"
          rows="1"
          enterkeyhint="send"
          placeholder=${t(answers ? "question.own" : "composer.placeholder")}
          aria-describedby=${answers ? "question-text" : "composer-hint"}
          .value=${live(state.draft)}
          @input=${(/** @type {any} */ event) => act.setDraft(event.target.value)}
          @keydown=${(/** @type {KeyboardEvent} */ event) => onKey(event, act)}
        ></textarea>
        <button
          type="submit"
          class="send"
          aria-label=${send}
          title=${send}
          ?disabled=${!canSend(state)}
        >
          ${icon("send")}
        </button>
      </div>
    </form>
    <div class="foot">
      ${enginesView(state)}
      <span class="keys" id="composer-hint">${t("composer.hint")}</span>
    </div>`;
}

/** @param {State} state @param {Actions} act  What the message quotes, or says anew. */
function aboutView({ composing }, act) {
  const { about } = composing;
  if (!about) return nothing;
  return html`<div class="composer-about">
    ${icon(about.how)}
    <p>
      <span class="about-how">${t(`composer.${about.how}`)}</span>
      <span class="about-text">${shown(about.text)}</span>
    </p>
    <button
      type="button"
      class="icon-button small"
      aria-label=${t(`composer.${about.how}.forget`)}
      title=${t(`composer.${about.how}.forget`)}
      @click=${() => act.messages.forget()}
    >
      ${icon("x")}
    </button>
  </div>`;
}

/**
 * Enter sends, except with Shift and except where it picks an input method's candidate: browsers
 * tell that by either of two signs. Escape writes without what is quoted.
 *
 * @param {KeyboardEvent} event
 * @param {Actions} act
 */
function onKey(event, act) {
  if (event.isComposing || event.keyCode === 229) return;
  const field = /** @type {HTMLTextAreaElement} */ (event.target);
  if (event.key === "Escape" && act.store.state.composing.about) act.messages.forget();
  else if (event.key === "Enter" && !event.shiftKey) sendFrom(field, act);
  else return;
  event.preventDefault();
}

/**
 * The field is empty at once: what is typed before the next frame belongs to the next message.
 *
 * @param {HTMLTextAreaElement} field
 * @param {Actions} act
 */
function sendFrom(field, act) {
  act.send();
  field.value = act.store.state.draft;
}

const SEATS = ["teller", "planner", "standard", "specialist", "deferred", "command"];

/**
 * What serves what: the seats that are served alike stand together, those that matter most first.
 *
 * @param {Record<string, SeatEngine>} engines
 * @returns {[string[], SeatEngine][]}
 */
function grouped(engines) {
  const place = (/** @type {string} */ seat) => SEATS.indexOf(seat) + 1 || SEATS.length + 1;
  const seats = Object.keys(engines).sort((a, b) => place(a) - place(b) || a.localeCompare(b));
  /** @type {Map<string, [string[], SeatEngine]>} */
  const groups = new Map();
  for (const seat of seats) {
    const key = JSON.stringify([engines[seat].engine, why(engines[seat])]);
    if (!groups.has(key)) groups.set(key, [[], engines[seat]]);
    groups.get(key)?.[0].push(seat);
  }
  return [...groups.values()];
}

/** @param {SeatEngine | undefined} engine */
function why(engine) {
  const reason = reasonWords(engine?.reason, engine?.why).replaceAll("`", "");
  if (engine?.state !== "waiting") return reason;
  // What the server said of these mends nothing: the engines' page has it.
  const isPlain = ["limited", "unreachable", "broken"].includes(engine.want ?? "");
  return isPlain ? t("state.waiting") : `${t("state.waiting")}: ${reason}`;
}

/** @param {string[]} seats @param {SeatEngine} engine */
function engineRow(seats, engine) {
  return html`<div>
    <dt>${seats.map((seat) => word("seat", seat)).join(t("list.and"))}</dt>
    <dd>
      <strong>${word("engine", engine.engine)}</strong>
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
  const beside = [basic, why(teller)].filter(Boolean).join(" · ");
  return html`<button type="button" class="engines" popovertarget="engines-box">
      ${
        plain
          ? html`<span>${t("engines.byNone")}</span>`
          : html`<span
              >${t("engines.by")}
              <strong>${teller?.engine ?? t("engines.none")}</strong>${beside ? ` — ${beside}` : ""}</span
            >`
      }
    </button>
    <div id="engines-box" class="popover engines-box" popover aria-label=${t("engines.title")}>
      <h2>${t("engines.title")}</h2>
      <dl>${grouped(engines).map(([seats, engine]) => engineRow(seats, engine))}</dl>
      ${plain ? html`<p>${t("engines.hint")}</p>` : nothing}
      ${basic ? html`<p>${t("engines.basicHint")}</p>` : nothing}
      ${quarantined ? html`<p>${tn("engines.quarantined", quarantined)}</p>` : nothing}
      <p class="muted">
        <a
          href="#/engines"
          @click=${(/** @type {any} */ event) => event.target.closest("[popover]").hidePopover()}
          >${t("engines.page")}</a
        >
        · ${t("engines.check")} <code>mimikit doctor</code>
      </p>
    </div>`;
}
