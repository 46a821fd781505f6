/** Settings: notification channels, improvements while idle, limits. */

import { html, nothing } from "../core/html.js";
import { t, tn } from "../core/i18n.js";
import { inputField } from "../ui/fields.js";
import * as parts from "../ui/parts.js";
import { button, moment, said, word } from "../ui/parts.js";
import { filesView } from "./diff.js";
import { NUMBERS, QUIET } from "./life.js";

const LOOKS = { committed: "plain", proposed: "plain", nothing: "plain", dropped: "warn" };

/** @param {State} state @param {Actions} act */
export function lifeView(state, act) {
  const { load, error, selfAwake, notify } = state.life;
  if (load === "failed") return parts.failedView(() => act.life.all.load(), error);
  const body =
    selfAwake && notify
      ? [notifyView(notify, state, act), selfAwakeView(selfAwake, state, act), limitsView(state, act)]
      : parts.loading(t("life.loading"));
  return parts.pageView("engines-page life-page", t("life.title"), body);
}

// --- notifications

/** @param {Notify} notify @param {State} state @param {Actions} act */
function notifyView({ isInstalled, channels, sent }, state, act) {
  const add = parts.onSubmit(() => void act.life.addChannel());
  const { channel } = state.life;
  const busy = Boolean(state.pending.channels);
  const log = html`<h4>${t("notify.sent")}</h4>
    <ul class="life-rows">${sent.slice(0, 10).map(sentView)}</ul>`;
  /** @param {"url" | "name"} name @param {Partial<Field>} more */
  const field = (name, more) =>
    inputField({
      name: `notify-${name}`,
      label: t(`notify.${name}`),
      value: channel[name],
      error: channel.errors[name],
      change: (value) => act.life.editChannel({ [name]: value }),
      mono: true,
      ...more,
    });
  return html`<section aria-labelledby="notify-title">
    <h3 id="notify-title">${t("notify.title")}</h3>
    <p class="muted">${t("notify.hint")}</p>
    ${isInstalled ? nothing : html`<p class="failure">${t("notify.install")} <code>pip install 'mimikit-assistant[notify]'</code></p>`}
    <ul class="triggers">${channels.map((one) => channelView(one, state, act))}</ul>
    <form id="notify-form" class="life-form" @submit=${add} novalidate>
      ${field("url", { hint: t("notify.examples"), placeholder: "ntfy://mimikit-7fq2k9", required: true })}
      ${field("name", { hint: t("notify.nameHint") })}
      ${parts.submitButton(t("notify.add"), busy, "plus")}
    </form>
    ${sent.length ? log : nothing}
  </section>`;
}

/** @param {Channel} channel @param {State} state @param {Actions} act */
function channelView({ name, address, waiting, error }, state, act) {
  const off = Boolean(state.pending.channels);
  const key = `channel ${name}`;
  const asked = t("notify.removeAsk", { name });
  const yes = t("triggers.removeYes");
  const remove = () => act.life.channel("remove", name);
  const buttons = html`<div class="trigger-actions">
    ${button(t("notify.test"), () => void act.life.channel("test", name), { off })}
    ${button(yes, () => act.ask(key), { off, sign: "trash", named: asked })}
  </div>`;
  return html`<li class="trigger" data-channel=${name}>
    <div class="trigger-title"><strong>${name}</strong> <code>${address}</code></div>
    ${waiting ? html`<p class="row-meta">${tn("notify.waiting", waiting)}</p>` : nothing}
    ${error ? html`<p class="error-text">${error}</p>` : nothing}
    ${state.confirming === key ? parts.confirmView(act, asked, yes, remove) : buttons}
  </li>`;
}

/** @param {SentNotice} sent */
function sentView({ at, channel, title, outcome, again, error }) {
  const look = outcome === "sent" ? "plain" : "warn";
  return html`<li>
    ${moment(at)} <strong>${channel}</strong> <span>${title}</span>
    <span class="badge badge-${look}">${t(`notify.is.${outcome}`)}</span>
    ${again ? html`<span class="badge badge-warn">${t("notify.twice")}</span>` : nothing}
    ${outcome !== "sent" && error ? html`<span class="muted">${error}</span>` : nothing}
  </li>`;
}

// --- improvements

/** @param {SelfAwake} selfAwake @param {State} state @param {Actions} act */
function selfAwakeView({ enabled, why, next, nextAt, runs, branches }, state, act) {
  const off = Boolean(state.pending.selfAwake);
  const busy = runs.some((run) => !run.end);
  const rows = runs.slice(0, 10).map((run) => runView(run, branches, state, act));
  const toggle = () => void act.life.selfAwake(enabled ? "off" : "on");
  return html`<section aria-labelledby="awake-title">
    <h3 id="awake-title">${t("awake.title")}</h3>
    <p class="muted">${t("awake.hint")}</p>
    <div class="trigger-actions">
      ${button(t("awake.switch"), toggle, { look: "", pressed: enabled, sign: enabled ? "check" : "dark", off, id: "awake-switch" })}
      ${button(t("awake.run"), () => void act.life.selfAwake("run"), { look: "", sign: "play", off: off || busy })}
    </div>
    ${parts.factsList([
      ["awake.now", enabled && !busy && why && said(why)],
      ["awake.next", enabled && next && html`${word("awake.item", next)} ${nextAt ? moment(nextAt) : nothing}`],
    ])}
    ${runs.length ? html`<ul class="triggers">${rows}</ul>` : html`<p class="muted">${t("awake.none")}</p>`}
  </section>`;
}

/** @param {Improvement} run @param {string[]} branches @param {State} state @param {Actions} act */
function runView({ item, startedAt, end, reason, branch, plan }, branches, state, act) {
  const look = end ? LOOKS[end] : "plain";
  const open = branch && branches.includes(branch);
  return html`<li class="trigger" data-branch=${branch ?? nothing}>
    <div class="trigger-title">
      <strong>${word("awake.item", item)}</strong>
      <span class="badge badge-${look}">${t(`awake.is.${end ?? "running"}`)}</span>
    </div>
    <p class="row-meta">
      ${moment(startedAt)} <a href="#/task/${plan}">${t("awake.task")}</a>
      ${branch && !open ? html`<span>${t("awake.over")}</span>` : nothing}
    </p>
    ${reason ? html`<p class="muted">${reason}</p>` : nothing}
    ${open ? branchView(branch, state, act) : nothing}
  </li>`;
}

/** @param {string} branch  Not merged. @param {State} state @param {Actions} act */
function branchView(branch, state, act) {
  const { shown } = state.life;
  const mine = shown?.branch === branch ? shown : null;
  const off = Boolean(state.pending.selfAwake);
  const yes = t("awake.discard");
  const discard = () => act.life.selfAwake("discard", branch);
  const buttons = html`<div class="trigger-actions">
    ${button(t("awake.diff"), () => void act.life.showDiff(branch), { expanded: Boolean(mine) })}
    ${button(yes, () => act.ask(branch), { sign: "trash", off })}
  </div>`;
  return html`<p class="muted">${t("awake.merge")}</p>
    ${commandView(`git merge ${branch}`, act)} ${commandView(`git branch -D ${branch}`, act)}
    ${state.confirming === branch ? parts.confirmView(act, t("awake.discardAsk"), yes, discard) : buttons}
    ${mine?.error ? html`<p class="error-text">${mine.error}</p>` : nothing}
    ${mine?.diff ? filesView(mine.diff, mine.unfolded, act.life) : nothing}`;
}

/** @param {string} command @param {Actions} act */
function commandView(command, act) {
  const copy = () => void act.copyMessage(command);
  return html`<p class="life-command">
    <code>${command}</code>${parts.iconButton("copy", t("awake.copy", { command }), copy)}
  </p>`;
}

// --- limits

/** @param {State} state @param {Actions} act */
function limitsView(state, act) {
  const { values, typed, errors } = state.life;
  const save = parts.onSubmit(() => void act.life.save());
  const field = (/** @type {string} */ key) =>
    inputField({
      name: `life-${key.replace(/\W/g, "-")}`,
      label: t(`life.${key}`),
      value: typed[key] ?? String(values[key] ?? ""),
      error: errors[key],
      hint: t(`life.${key}.hint`),
      inputmode: key === QUIET ? undefined : "numeric",
      change: (value) => act.life.type(key, value),
    });
  return html`<section aria-labelledby="limits-title">
    <h3 id="limits-title">${t("life.limits")}</h3>
    <form id="life-form" class="life-form" @submit=${save} novalidate>
      ${[...NUMBERS, QUIET].map(field)}
      ${parts.submitButton(t("life.save"), Boolean(state.pending.settings))}
    </form>
  </section>`;
}
