/** One trigger in full: what it does, why it waits, what it did. */

import { html, icon, nothing } from "../core/html.js";
import { language, t, tn } from "../core/i18n.js";
import { shown } from "../core/shown.js";
import { duration } from "../core/time.js";
import { chainView } from "./chain.js";
import {
  ago,
  emptyState,
  loading,
  said,
  since,
  stamped,
  stateIcon,
  triggerTitle,
  usageWords,
  word,
} from "../ui/parts.js";
import { brokenView, triggerBadges, triggerButtons } from "./trigger-buttons.js";

/**
 * @typedef {import("../core/state-types.js").State} State
 * @typedef {import("../core/types.js").Trigger} Trigger
 * @typedef {import("../core/types.js").Explanation} Explanation
 * @typedef {import("../core/types.js").NodeExplanation} ConditionNode
 * @typedef {import("../core/types.js").SlotExplanation} Slot
 * @typedef {import("../core/state-types.js").TriggerDetail} TriggerDetail
 * @typedef {import("../core/actions.js").Actions} Actions
 */

/** @param {State} state @param {Actions} act */
export function triggerView(state, act) {
  const back = html`<a class="back" href="#/triggers">${icon("back")}${t("trigger.back")}</a>`;
  return html`${back}${bodyView(state, act)}`;
}

/** @param {State} state @param {Actions} act */
function bodyView(state, act) {
  const detail = state.triggerDetail;
  if (!detail) return loading(t("trigger.loading"));
  const trigger = detail.load === "ready" ? detail.trigger : (state.triggers[detail.id] ?? null);
  const unknown = detail.load === "missing" || detail.explanation?.state === "unknown";
  if (unknown && !trigger) {
    return emptyState(t("trigger.missing"), t("trigger.missingText"));
  }
  if (detail.load === "failed" && !trigger && !detail.explanation) {
    const again = html`<button type="button" class="small" @click=${() => act.reloadTrigger()}>
      ${icon("retry")}${t("load.again")}
    </button>`;
    return emptyState(t("load.failed"), t("load.unreachable"), again);
  }
  const { explanation } = detail;
  const known = trigger || explanation;
  return html`<article class="task trigger-full" data-trigger=${detail.id}>
    ${headView(detail.id, trigger, explanation, state, act)}
    ${known ? nothing : loading(t("trigger.loading"))}
    ${trigger ? factsView(trigger, state) : nothing}
    ${explanation ? whyView(explanation, said(trigger?.words), state) : nothing}
    ${trigger?.prompt ? promptView(trigger) : nothing}
    ${chainView(detail.chain, detail.id, state)}
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
    ${
      trigger
        ? html`<p class="trigger-words">${icon("trigger")}${said(trigger.words)}</p>
            ${badgesView(trigger)} ${explanation ? nothing : brokenView(trigger)}`
        : goneView(explanation)
    }
    ${explanation ? headlineView(explanation) : nothing}
    ${trigger ? triggerButtons(trigger, state, act) : nothing}
  </header>`;
}

/** @param {Explanation | null} explanation  Only its past is known; or nothing is, yet. */
function goneView(explanation) {
  if (!explanation) return nothing;
  return html`<p class="task-state"><span class="badge">${t("triggers.gone")}</span></p>`;
}

/** @param {Trigger} trigger */
function badgesView(trigger) {
  const plain = trigger.enabled && !trigger.broken && !trigger.blockedBy;
  return plain ? nothing : html`<p class="task-state">${triggerBadges(trigger)}</p>`;
}

/** @param {Explanation} explanation */
function headlineView(explanation) {
  return html`<p class="trigger-headline is-${explanation.state}" role="status">
    ${said(explanation.headline)}
  </p>`;
}

/** @param {Trigger} trigger @param {State} state */
function factsView(trigger, state) {
  const { now } = state;
  const lang = language();
  /** @type {[string, unknown][]} */
  const facts = [];
  if (trigger.enabled && trigger.nextRunAt) {
    facts.push(["trigger.next", html`${ago(trigger.nextRunAt, now)}`]);
  }
  facts.push(
    ["trigger.last", trigger.lastRunAt ? since(trigger.lastRunAt, now) : t("triggers.never")],
    ["trigger.fired", trigger.fireCount],
    ["task.seat", word("profile", trigger.profile)],
  );
  if (trigger.last && trigger.fireCount) facts.push(["trigger.went", said(trigger.last)]);
  if (trigger.cooldown) facts.push(["form.cooldown", duration(trigger.cooldown * 1000, lang)]);
  if (trigger.once) facts.push(["trigger.once", t("trigger.onceYes")]);
  if (trigger.overlap === "queue") facts.push(["form.overlap", t("form.overlap.queue")]);
  facts.push(["form.notify", said(trigger.told)]);
  const used = state.triggerDetail?.usage;
  if (used?.runs) facts.push(["usage.today", usageWords(used)]);
  if (trigger.createdAt) facts.push(["task.created", since(trigger.createdAt, now)]);
  if (trigger.lastTaskId) {
    const link = html`<a href="#/task/${trigger.lastTaskId}">${t("trigger.open")}</a>`;
    facts.push(["trigger.lastTask", link]);
  }
  return html`<dl class="facts">
    ${facts.map(
      ([key, value]) =>
        html`<div>
          <dt>${t(key)}</dt>
          <dd>${value}</dd>
        </div>`,
    )}
  </dl>`;
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

/** @param {ConditionNode} node */
function holdsOf({ holds }) {
  if (holds === null) return "open";
  return holds ? "holds" : "holdsNot";
}

/** @param {ConditionNode} node @param {State} state */
function nodeView(node, state) {
  const why = said(node.why);
  return html`<li class="node depth-${Math.min(node.depth, 4)}" data-path=${node.path}>
    ${stateIcon(holdsOf(node))}
    <div>
      <p class="node-words">${said(node.words) || node.type}</p>
      ${
        why || node.at
          ? html`<p class="node-why">
              ${why ? html`<span>${why}</span>` : nothing}
              ${node.at ? html`<span>${ago(node.at, state.now)}</span>` : nothing}
            </p>`
          : nothing
      }
    </div>
  </li>`;
}

/** @param {Slot[]} slots @param {State} state */
function slotsView(slots, state) {
  if (!slots.length) return nothing;
  return html`<section>
    <h3>${t("trigger.slots")}</h3>
    <div class="slots-box table-box">
      <table class="slots">
        <thead>
          <tr>
            <th scope="col">${t("trigger.slotAt")}</th>
            <th scope="col">${t("trigger.slotState")}</th>
            <th scope="col">${t("trigger.slotTask")}</th>
          </tr>
        </thead>
        <tbody>
          ${slots.map((slot) => slotView(slot, state))}
        </tbody>
      </table>
    </div>
  </section>`;
}

/** @param {Slot} slot @param {State} state */
function slotView(slot, state) {
  const reason = said(slot.reason);
  const missed = slot.missed ? tn("trigger.missed", slot.missed) : "";
  const task = slot.taskId ? state.tasks[slot.taskId] : undefined;
  return html`<tr class="is-${slot.state}">
    <td>${stamped(slot.at)}</td>
    <td>
      <span class="slot-state state-${slot.state}">${t(`slot.${slot.state}`)}</span>
      ${[reason, missed].filter(Boolean).map((text) => html`<span class="slot-why">${text}</span>`)}
    </td>
    <td>
      ${
        slot.taskId
          ? html`<a href="#/task/${slot.taskId}"
              >${task ? stateIcon(task.state) : nothing}${t("trigger.open")}<span class="sr-only">
                ${slot.taskId}</span
              ></a
            >`
          : nothing
      }
    </td>
  </tr>`;
}
