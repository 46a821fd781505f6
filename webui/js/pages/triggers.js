/** Triggers, what makes tasks by itself: the list of them, and one in full. */

import { html, icon, nothing, repeat } from "../core/html.js";
import { language, t, tn } from "../core/i18n.js";
import { shown } from "../core/shown.js";
import { duration } from "../core/time.js";
import * as parts from "../ui/parts.js";
import {
  ago,
  button,
  iconButton,
  said,
  since,
  stateIcon,
  triggerTitle,
  word,
} from "../ui/parts.js";
import { chainView } from "./chain.js";

/** @param {State} state @param {Actions} act */
export function triggersView(state, act) {
  if (state.load === "failed") {
    return parts.failedView(() => act.session.load(), state.loadError);
  }
  if (state.load === "loading") return parts.loading(t("triggers.loading"));
  const triggers = Object.values(state.triggers).sort(byNextRun);
  return html`<div class="list-head">
      <h2 class="sr-only" tabindex="-1" data-focus>${t("nav.triggers")}</h2>
      <a class="button small" href="#/triggers/new">${icon("plus")}${t("triggers.new")}</a>
    </div>
    ${
      triggers.length
        ? html`<ul class="triggers">
            ${repeat(
              triggers,
              (/** @type {Trigger} */ trigger) => trigger.id,
              (/** @type {Trigger} */ trigger) => cardView(trigger, state, act),
            )}
          </ul>`
        : parts.emptyState(t("triggers.empty"), t("triggers.emptyText"))
    }`;
}

/** @param {Trigger} a @param {Trigger} b  The next to fire first, the paused last. */
function byNextRun(a, b) {
  const when = (/** @type {Trigger} */ one) =>
    one.enabled ? Date.parse(one.nextRunAt ?? "") || 9e15 : Infinity;
  const [first, second] = [when(a), when(b)];
  return first === second ? a.createdAt.localeCompare(b.createdAt) : first - second;
}

/** @param {Trigger} trigger @param {State} state @param {Actions} act */
function cardView(trigger, state, act) {
  return html`<li class="trigger ${trigger.enabled ? "" : "is-paused"}" data-trigger=${trigger.id}>
    <div class="trigger-title">
      <a href="#/trigger/${trigger.id}">${triggerTitle(trigger)}</a>
      <span class="badges">${badgesOf(trigger)}</span>
    </div>
    <p class="trigger-words">${icon("trigger")}${parts.triggerWhen(trigger)}</p>
    ${trigger.broken ? nothing : verdictView(trigger)}
    <p class="row-meta">${timesView(trigger, state)}</p>
    ${trigger.failureStreak ? html`<p class="verdict">${said(trigger.last)}</p>` : nothing}
    ${brokenView(trigger)} ${buttonsView(trigger, state, act)}
  </li>`;
}

/** @param {Trigger} trigger  Why it waits, unless it only waits for its time: that stands below. */
function verdictView(trigger) {
  const timed = trigger.nextRunAt && !trigger.blockedBy;
  const headline = timed || !trigger.enabled ? "" : said(trigger.headline);
  const verdict = trigger.lastVerdict === "ran" ? "" : word("verdict", trigger.lastVerdict);
  return headline || verdict ? html`<p class="verdict">${headline || verdict}</p>` : nothing;
}

/** @param {Trigger} trigger @param {State} state */
function timesView({ enabled, nextRunAt: next, lastRunAt: last, fireCount, lastTaskId }, { now }) {
  const due = next && Date.parse(next) <= now;
  const coming = next && !due ? html`${t("triggers.next")} ${ago(next, now)}` : t("triggers.due");
  return html`${enabled && next ? html`<span>${coming}</span>` : nothing}
    <span>${last ? html`${t("triggers.last")} ${since(last, now)}` : t("triggers.never")}</span>
    ${fireCount ? html`<span>${tn("triggers.fired", fireCount)}</span>` : nothing}
    ${lastTaskId ? html`<a href="#/task/${lastTaskId}">${t("triggers.lastTask")}</a>` : nothing}`;
}

// --- what can be done with one, and what is out of the ordinary with it

/** @param {Trigger} trigger @param {State} state @param {Actions} act */
function buttonsView(trigger, state, act) {
  const { id, enabled, type, broken } = trigger;
  if (state.confirming === id) return removalView(id, act);
  const off = Boolean(state.pending[id]);
  const readable = type !== "broken"; // of the others nothing is known but the file
  const order = (/** @type {"run" | "pause" | "resume"} */ what, /** @type {string} */ sign) =>
    button(t(`triggers.${what}`), () => act.orderTrigger(id, what), { sign, off });
  const named = t("triggers.editNamed", { title: triggerTitle(trigger) });
  return html`<div class="trigger-actions">
    ${readable ? order("run", "play") : nothing}
    ${readable ? (enabled ? order("pause", "pause") : order("resume", "play")) : nothing}
    <span class="trigger-more">
      ${
        readable && !broken
          ? html`<a
              class="button icon-button small"
              href="#/trigger/${id}/edit"
              aria-label=${named}
              title=${t("triggers.edit")}
              >${icon("edit")}</a
            >`
          : nothing
      }
      ${iconButton("trash", t("triggers.remove"), () => act.store.set({ confirming: id }), { off })}
    </span>
  </div>`;
}

/** @param {string} id @param {Actions} act */
function removalView(id, act) {
  return html`<div class="trigger-actions" role="group" aria-label=${t("triggers.confirm")}>
    <span>${t("triggers.confirm")}</span>
    ${button(t("triggers.removeYes"), () => act.removeTrigger(id), { look: "small danger" })}
    ${button(t("triggers.removeNo"), () => act.store.set({ confirming: "" }))}
  </div>`;
}

/** @param {Trigger} trigger */
function badgesOf({ broken, blockedBy, enabled, type }) {
  return html`${broken ? badge("broken", "danger") : nothing}
  ${blockedBy && !broken ? badge("blocked", "warn") : nothing}
  ${enabled || type === "broken" ? nothing : badge("paused", "plain")}`;
}

/** @param {string} name @param {string} tone */
function badge(name, tone) {
  return html`<span class="badge badge-${tone}">${t(`triggers.${name}`)}</span>`;
}

/** @param {Trigger} trigger  Why its file cannot be read, and what holds meanwhile. */
function brokenView({ broken, type }) {
  if (!broken) return nothing;
  const left = type === "broken" ? "triggers.brokenRests" : "triggers.brokenLastGood";
  return html`<p class="verdict error-text">${broken}</p>
    <p class="verdict">${t(left)}</p>`;
}

// --- one in full

/** @param {State} state @param {Actions} act */
export function triggerView(state, act) {
  return html`${parts.backLink("#/triggers", t("trigger.back"))}${fullView(state, act)}`;
}

/** @param {State} state @param {Actions} act  When there is none to be shown: why. */
export function noTriggerView({ triggerDetail: detail }, act) {
  if (detail?.load === "failed") return parts.failedView(() => act.keepers.trigger.load(detail.id));
  const gone = detail?.load === "missing" || (detail?.load === "ready" && !detail.trigger);
  return gone
    ? parts.emptyState(t("trigger.missing"), t("trigger.missingText"))
    : parts.loading(t("trigger.loading"));
}

/** @param {State} state @param {Actions} act */
function fullView(state, act) {
  const detail = state.triggerDetail;
  if (!detail) return noTriggerView(state, act);
  const { explanation, load, id } = detail;
  const trigger = load === "ready" ? detail.trigger : (state.triggers[id] ?? null);
  const told = explanation && explanation.state !== "unknown" && load !== "missing";
  if (!trigger && !told && load !== "loading") return noTriggerView(state, act);
  return html`<article class="task trigger-full" data-trigger=${id}>
    ${headView(id, trigger, explanation, state, act)}
    ${trigger || explanation ? nothing : parts.loading(t("trigger.loading"))}
    ${trigger ? factsView(trigger, state) : nothing}
    ${explanation ? whyView(explanation, said(trigger?.words), state) : nothing}
    ${trigger?.prompt ? promptView(trigger) : nothing} ${chainView(detail.chain, id, state)}
    ${explanation ? slotsView(explanation.slots, state) : nothing}
  </article>`;
}

/**
 * @param {string} id
 * @param {Trigger | null} trigger
 * @param {Explanation | null} explanation
 * @param {State} state
 * @param {Actions} act
 */
function headView(id, trigger, explanation, state, act) {
  return html`<header class="task-head">
    <h2 tabindex="-1" data-focus>${trigger ? triggerTitle(trigger) : id}</h2>
    ${trigger ? aboutView(trigger, explanation) : nothing}
    ${!trigger && explanation ? stateView(badge("gone", "plain")) : nothing}
    ${
      explanation
        ? html`<p class="trigger-headline is-${explanation.state}" role="status">
            ${said(explanation.headline)}
          </p>`
        : nothing
    }
    ${trigger ? buttonsView(trigger, state, act) : nothing}
  </header>`;
}

/** @param {Trigger} trigger @param {Explanation | null} explanation */
function aboutView(trigger, explanation) {
  const plain = trigger.enabled && !trigger.broken && !trigger.blockedBy;
  return html`<p class="trigger-words">${icon("trigger")}${said(trigger.words)}</p>
    ${plain ? nothing : stateView(badgesOf(trigger))} ${explanation ? nothing : brokenView(trigger)}`;
}

/** @param {unknown} badges */
function stateView(badges) {
  return html`<p class="task-state">${badges}</p>`;
}

/** @param {Trigger} trigger @param {State} state */
function factsView(trigger, { now, triggerDetail }) {
  const { enabled, nextRunAt, lastRunAt, createdAt, lastTaskId, cooldown, fireCount } = trigger;
  const used = triggerDetail?.usage;
  return parts.factsList([
    ["trigger.next", enabled && nextRunAt && ago(nextRunAt, now)],
    ["trigger.last", lastRunAt ? since(lastRunAt, now) : t("triggers.never")],
    ["trigger.fired", String(fireCount)],
    ["task.seat", word("profile", trigger.profile)],
    ["trigger.went", fireCount > 0 && said(trigger.last)],
    ["form.cooldown", cooldown && duration(cooldown * 1000, language())],
    ["trigger.once", trigger.once && t("trigger.onceYes")],
    ["form.overlap", trigger.overlap === "queue" && t("form.overlap.queue")],
    ["form.notify", said(trigger.told)],
    ["usage.today", used?.runs && parts.usageWords(used)],
    ["task.created", createdAt && since(createdAt, now)],
    ["trigger.lastTask", lastTaskId && taskLink(lastTaskId)],
  ]);
}

/** @param {string} id */
function taskLink(id) {
  return html`<a href="#/task/${id}">${t("trigger.open")}</a>`;
}

/** @param {Trigger} trigger */
function promptView(trigger) {
  return html`<section>
    <h3>${t("task.prompt")}</h3>
    <pre class="prompt" dir="auto" tabindex="0">${shown(trigger.prompt)}</pre>
  </section>`;
}

/** @param {Explanation} explanation @param {string} words when it runs: that stands above @param {State} state */
function whyView({ lines: all, nodes }, words, state) {
  const lines = all.filter((line) => !words || !said(line).includes(words));
  if (!lines.length && !nodes.length) return nothing;
  return html`<section>
    <h3>${t("trigger.why")}</h3>
    ${lines.map((line) => html`<p class="why-line">${said(line)}</p>`)}
    ${
      nodes.length
        ? html`<ul class="nodes" aria-label=${t("trigger.condition")}>
            ${nodes.map((node) => nodeView(node, state))}
          </ul>`
        : nothing
    }
  </section>`;
}

/** @param {NodeExplanation} node @param {State} state */
function nodeView({ path, depth, type, words, holds, why, at }, state) {
  const stands = holds === null ? "open" : holds ? "holds" : "holdsNot";
  return html`<li class="node depth-${Math.min(depth, 4)}" data-path=${path}>
    ${stateIcon(stands)}
    <div>
      <p class="node-words">${said(words) || type}</p>
      ${
        said(why) || at
          ? html`<p class="node-why">
              ${said(why) ? html`<span>${said(why)}</span>` : nothing}
              ${at ? html`<span>${ago(at, state.now)}</span>` : nothing}
            </p>`
          : nothing
      }
    </div>
  </li>`;
}

/** @param {SlotExplanation[]} slots @param {State} state */
function slotsView(slots, state) {
  if (!slots.length) return nothing;
  const heads = ["trigger.slotAt", "trigger.slotState", "trigger.slotTask"];
  return html`<section>
    <h3>${t("trigger.slots")}</h3>
    <div class="slots-box table-box">
      <table class="slots">
        <thead>
          <tr>
            ${heads.map((head) => html`<th scope="col">${t(head)}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${slots.map((slot) => slotView(slot, state))}
        </tbody>
      </table>
    </div>
  </section>`;
}

/** @param {SlotExplanation} slot @param {State} state */
function slotView({ at, state: went, reason, missed, taskId }, { tasks }) {
  const why = [said(reason), missed ? tn("trigger.missed", missed) : ""].filter(Boolean);
  const task = taskId ? tasks[taskId] : undefined;
  return html`<tr class="is-${went}">
    <td>${parts.stamped(at)}</td>
    <td>
      <span class="slot-state state-${went}">${t(`slot.${went}`)}</span>
      ${why.map((text) => html`<span class="slot-why">${text}</span>`)}
    </td>
    <td>
      ${
        taskId
          ? html`<a href="#/task/${taskId}"
              >${task ? stateIcon(task.state) : nothing}${t("trigger.open")}<span class="sr-only">
                ${taskId}</span
              ></a
            >`
          : nothing
      }
    </td>
  </tr>`;
}
