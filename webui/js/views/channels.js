/** Channels of notifications: what there is and how it is, the form of one. */

import { EVENTS } from "../channel-actions.js";
import { html, icon, nothing } from "../html.js";
import { t, tn } from "../i18n.js";
import { inputField } from "./fields.js";
import { emptyState, iconButton, loading, moment } from "./parts.js";

/**
 * @typedef {import("../state-types.js").State} State
 * @typedef {import("../state-types.js").ChannelForm} ChannelForm
 * @typedef {import("../types.js").Channel} Channel
 * @typedef {import("../actions.js").Actions} Actions
 */

/** @param {State} state @param {Actions} act */
export function channelsView(state, act) {
  const { list, load, error, form } = state.channels;
  if (!list && load === "failed") {
    const again = html`<button type="button" class="small" @click=${() => act.channels.load()}>
      ${icon("retry")}${t("load.again")}
    </button>`;
    return emptyState(t("load.failed"), error, again);
  }
  const title = html`<h2 tabindex="-1" data-focus>${t("channels.page")}</h2>`;
  if (!list) return html`<div class="engines-page">${title}${loading(t("channels.loading"))}</div>`;
  return html`<a class="back" href="#/settings">${icon("back")}${t("settings.title")}</a>
    <div class="engines-page">
      ${title}
      <p class="muted">${t("channels.pageHint")}</p>
      ${list.installed ? nothing : html`<p class="muted">${icon("info")}${t("channels.missing")}</p>`}
      ${
        list.channels.length
          ? html`<ul class="triggers">
              ${list.channels.map((channel) => cardView(channel, state, act))}
            </ul>`
          : html`<p class="muted">${t("channels.none")}</p>`
      }
      ${list.quiet ? html`<p class="muted">${t("channels.quiet", { hours: list.quiet })}</p>` : nothing}
      ${
        form
          ? formView(form, act)
          : html`<button type="button" id="channel-add" @click=${() => act.channels.open("")}>
              ${icon("plus")}${t("channels.add")}
            </button>`
      }
    </div>`;
}

/** @param {Channel} channel @param {State} state @param {Actions} act */
function cardView(channel, state, act) {
  const { name, service, events, waiting, failing } = channel;
  const all = events.length === EVENTS.length;
  return html`<li class="trigger" data-channel=${name}>
    <div class="trigger-title">
      <strong>${name}</strong>
      ${failing ? html`<span class="badge badge-warn">${t("channels.failing")}</span>` : nothing}
    </div>
    <p class="row-meta">
      <span>${service || t("channels.noAddress")}</span>
      <span>${all ? t("channels.forAll") : eventWords(events)}</span>
      ${waiting ? html`<span>${tn("channels.waiting", waiting)}</span>` : nothing}
    </p>
    ${historyView(channel)} ${testView(state.channels.tests[name])}
    ${buttonsView(name, state, act)}
  </li>`;
}

/** @param {Channel} channel */
function historyView({ failing, failedAt, error, sentAt }) {
  if (failing && failedAt)
    return html`<p class="verdict">
      ${t("channels.failed")} ${moment(failedAt)}
      <span class="engine-reason muted">${error}</span>
    </p>`;
  return html`<p class="row-meta">
    <span>${sentAt ? html`${t("channels.sent")} ${moment(sentAt)}` : t("channels.notYet")}</span>
  </p>`;
}

/** @param {import("../types.js").ChannelTest | null | undefined} found */
function testView(found) {
  const said = found
    ? found.ok
      ? html`<p>${icon("check")}${t("channels.testSent")}</p>`
      : html`<p>${icon("alert")}${t("channels.testFailed")}
          <span class="engine-reason muted">${found.message}</span></p>`
    : nothing;
  return html`<div role="status" class="engine-trial">${said}</div>`;
}

/** @param {readonly string[]} events */
function eventWords(events) {
  return events.map((event) => t(`channels.event.${event}`)).join(t("list.and"));
}

/** @param {string} name @param {State} state @param {Actions} act */
function buttonsView(name, state, act) {
  const { removing, busy } = state.channels;
  if (removing === name)
    return html`<div class="trigger-actions" role="group" aria-label=${t("channels.confirm", { name })}>
      <span>${t("channels.confirm", { name })}</span>
      <button type="button" class="small danger" @click=${() => act.channels.remove(name)}>
        ${t("triggers.removeYes")}
      </button>
      <button type="button" class="small" id="channel-remove-no" @click=${() => act.channels.confirm("")}>
        ${t("triggers.removeNo")}
      </button>
    </div>`;
  return html`<div class="trigger-actions">
    <button
      type="button"
      class="small"
      ?disabled=${Boolean(busy)}
      aria-label=${t("channels.testNamed", { name })}
      @click=${() => act.channels.test(name)}
    >
      ${icon("send")}${t(busy === name ? "channels.testing" : "channels.test")}
    </button>
    <span class="trigger-more"
      >${iconButton("edit", t("engines.editNamed", { name }), () => act.channels.open(name))}
      ${iconButton("trash", t("engines.removeNamed", { name }), () => act.channels.confirm(name))}</span
    >
  </div>`;
}

/** @param {ChannelForm} form @param {Actions} act */
function formView(form, act) {
  const { base, busy, errors } = form;
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    void act.channels.save();
  };
  return html`<form class="engine-form" id="channel-form" novalidate @submit=${submit}>
    <h3>${base ? t("engines.editNamed", { name: base.name }) : t("channels.addTitle")}</h3>
    ${
      base
        ? nothing
        : inputField({
            name: "channel-name",
            label: t("engines.field.name"),
            value: form.name,
            error: errors.name,
            hint: t("engines.nameHint"),
            placeholder: "phone",
            required: true,
            mono: true,
            change: (name) => act.channels.edit({ name }),
          })
    }
    ${inputField({
      name: "channel-url",
      label: t("channels.url"),
      value: form.url,
      error: errors.url,
      hint: t(base ? "channels.urlAgain" : "channels.urlHint"),
      type: "password",
      required: !base,
      mono: true,
      change: (url) => act.channels.edit({ url }),
    })}
    <fieldset class="channel-events">
      <legend>${t("channels.events")}</legend>
      ${EVENTS.map(
        (event) =>
          html`<label
            ><input
              type="checkbox"
              .checked=${form.events.includes(event)}
              @change=${(/** @type {any} */ { target }) => act.channels.choose(event, target.checked)}
            />${t(`channels.event.${event}`)}</label
          >`,
      )}
    </fieldset>
    <div role="alert">
      ${
        errors.form
          ? html`<div class="failure" id="channel-form-error" tabindex="-1">${errors.form}</div>`
          : nothing
      }
    </div>
    <div class="trigger-actions">
      <button type="submit" class="primary" ?disabled=${busy}>
        ${t(busy ? "engines.saving" : "engines.save")}
      </button>
      <button type="button" @click=${() => act.channels.close()}>${t("engines.cancel")}</button>
    </div>
  </form>`;
}
