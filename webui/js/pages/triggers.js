/** Triggers, what makes tasks by itself: the list of them, and one in full. */

import { html, icon, nothing, repeat } from "../core/html.js";
import { language, t, tn } from "../core/i18n.js";
import { duration, fullTime } from "../core/time.js";
import * as parts from "../ui/parts.js";
import { ago, button, iconButton, said, since, stateIcon, triggerTitle, word } from "../ui/parts.js";
import { chainView } from "./chain.js";
import { outcomeView } from "./job.js";
import { promptView } from "./task.js";

const GROUPS = /** @type {const} */ (["attention", "active", "paused"]);
const ENDS = ["done", "failed", "canceled"];

/** @param {State} state @param {Actions} act */
export function triggersView(state, act) {
  if (state.load === "failed") return parts.failedView(() => act.session.load(), state.loadError);
  if (state.load === "loading") return parts.loading(t("triggers.loading"));
  const triggers = Object.values(state.triggers).sort(byNextRun);
  return html`<div class="list-head">
      <h2 class="sr-only" tabindex="-1" data-focus>${t("nav.triggers")}</h2>
      <a class="button small" href="#/triggers/new">${icon("plus")}${t("triggers.new")}</a>
    </div>
    ${triggers.length ? nothing : parts.emptyState(t("triggers.empty"), t("triggers.emptyText"))}
    ${GROUPS.map((name) => listOf(name, triggers.filter((one) => groupOf(one) === name), state, act))}`;
}

/** @param {Trigger} a @param {Trigger} b  The next to fire first. */
function byNextRun(a, b) {
  const [first, second] = [a, b].map((one) => Date.parse(one.nextRunAt ?? "") || 9e15);
  return first - second || a.createdAt.localeCompare(b.createdAt);
}

/** @param {Trigger} trigger  How its newest run ended. */
function lastEnd({ recent }) {
  return recent.findLast(({ state }) => ENDS.includes(state));
}

/** @param {Trigger} trigger  What the user has paused needs no attention. */
function groupOf(trigger) {
  if (trigger.broken || trigger.pausedBy) return "attention";
  if (!trigger.enabled) return "paused";
  return trigger.blockedBy || lastEnd(trigger)?.state === "failed" ? "attention" : "active";
}

/** @param {(typeof GROUPS)[number]} name @param {Trigger[]} triggers @param {State} state @param {Actions} act */
function listOf(name, triggers, state, act) {
  if (!triggers.length) return nothing;
  const title = html`${t(`triggers.group.${name}`)} <span class="group-count">${triggers.length}</span>`;
  const rows = repeat(triggers, ({ id }) => id, (trigger) => rowView(trigger, state, act));
  return parts.groupView(name, title, rows);
}

/** @param {Trigger} trigger @param {State} state @param {Actions} act */
function rowView(trigger, state, act) {
  const { id, broken, blockedBy, pausedBy, headline, last, recent } = trigger;
  const group = groupOf(trigger);
  const why = broken ? t("triggers.brokenWhy", { why: broken }) : group === "attention" ? said(blockedBy || pausedBy ? headline : last) : "";
  return html`<li class="row trigger is-${group}" data-trigger=${id}>
    <a class="row-link" href="#/trigger/${id}">
      <span class="row-main">
        <span class="trigger-title" dir="auto">${triggerTitle(trigger)}${group === "paused" ? nothing : badgesOf(trigger)}</span>
        <span class="row-meta">
          <span>${parts.triggerWhen(trigger)}</span>${timesView(trigger, state)}${runMarks(recent)}
        </span>
        ${why ? html`<span class="trigger-trouble error-text">${why}</span>` : nothing}
      </span>
    </a>
    ${trigger.type === "broken" ? nothing : switchView(trigger, state, act)}
  </li>`;
}

/** @param {Trigger} trigger @param {State} state  When it fires next, when it last did, and how that ended. */
function timesView(trigger, { now }) {
  const { enabled, nextRunAt: next, lastRunAt: last, recent } = trigger;
  const end = lastEnd(trigger)?.state;
  const due = next && Date.parse(next) <= now;
  const coming = next && !due ? html`${t("triggers.next")} ${ago(next, now)}` : t("triggers.due");
  const went = end ? html` <span class="state-${end}">${word("state", end)}</span>` : nothing;
  const never = recent.length ? nothing : t("triggers.never");
  return html`${enabled && next ? html`<span>${coming}</span>` : nothing}
    <span>${last ? html`${t("triggers.last")} ${since(last, now)}${went}` : never}</span>`;
}

/** @param {Trigger["recent"]} runs  A small mark for each, the newest at the end. */
function runMarks(runs) {
  if (!runs.length) return nothing;
  const words = runs.map(({ state }) => word("state", state)).join(", ");
  return html`<span class="marks"
    ><span class="sr-only">${t("triggers.marks", { words })}</span>${runs.map(
      ({ state, at }) =>
        html`<i class="mark is-${state}" title="${word("state", state)} · ${fullTime(at, language())}"></i>`,
    )}</span
  >`;
}

/** @param {Trigger} trigger @param {State} state @param {Actions} act  What was asked shows before it is done. */
function switchView(trigger, { pending }, act) {
  const { id } = trigger;
  const on = { pause: false, resume: true }[pending[id]] ?? trigger.enabled;
  const turn = async () => {
    if (pending[id]) return;
    await act.orderTrigger(id, on ? "pause" : "resume");
    // It will stand in another group.
    act.focus(`[data-trigger="${CSS.escape(id)}"] .switch[aria-checked="${!on}"]`);
  };
  return html`<button
    type="button"
    role="switch"
    class="switch"
    aria-checked=${on ? "true" : "false"}
    aria-label=${t("triggers.switch", { title: triggerTitle(trigger) })}
    title=${t(on ? "triggers.pause" : "triggers.resume")}
    @click=${turn}
  ></button>`;
}

/** @param {Trigger} trigger */
function badgesOf({ broken, blockedBy, enabled, type }) {
  if (broken) return badge("broken", "danger");
  return html`${blockedBy ? badge("blocked", "warn") : nothing}
  ${enabled || type === "broken" ? nothing : badge("paused", "plain")}`;
}

/** @param {string} name @param {string} tone */
function badge(name, tone) {
  return html`<span class="badge badge-${tone}">${t(`triggers.${name}`)}</span>`;
}

// --- one in full

/** @param {State} state @param {Actions} act */
export function triggerView(state, act) {
  return html`${parts.backLink("#/triggers", t("trigger.back"))}${fullView(state, act)}`;
}

/** @param {State} state @param {Actions} act  When there is none to be shown: why. */
export function noTriggerView({ triggerDetail: detail }, act) {
  if (detail?.load === "failed") return parts.failedView(() => act.triggers.opened.load(detail.id));
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
  if (!trigger && !told) return noTriggerView(state, act);
  return html`<article class="task trigger-full" data-trigger=${id}>
    ${headView(detail, trigger, state, act)} ${resultView(state.jobs[id], trigger, state, act)}
    ${trigger ? factsView(trigger, state) : nothing}
    ${explanation ? whyView(explanation, said(trigger?.words), state) : nothing}
    ${trigger?.prompt ? promptView(trigger.prompt) : nothing}
    ${chainView(detail.chain, id, state)} ${explanation ? slotsView(explanation.slots, state) : nothing}
  </article>`;
}

/** @param {TriggerPage} detail @param {Trigger | null} trigger @param {State} state @param {Actions} act */
function headView({ id, explanation }, trigger, state, act) {
  const plain = trigger?.enabled && !trigger.broken && !trigger.blockedBy;
  const badges = trigger ? badgesOf(trigger) : badge("gone", "plain");
  const left = trigger?.type === "broken" ? "triggers.brokenRests" : "triggers.brokenLastGood";
  return html`<header class="task-head">
    <h2 tabindex="-1" data-focus>${trigger ? triggerTitle(trigger) : id}</h2>
    ${trigger ? html`<p class="trigger-words">${icon("trigger")}${said(trigger.words)}</p>` : nothing}
    ${plain ? nothing : html`<p class="task-state">${badges}</p>`}
    ${explanation && headlineView(explanation)}
    ${trigger?.broken ? html`<p class="verdict">${t(left)}</p>` : nothing}
    ${trigger ? buttonsView(trigger, state, act) : nothing}
  </header>`;
}

/** @param {Explanation} explanation */
function headlineView({ state, headline }) {
  return html`<p class="trigger-headline is-${state}" role="status">${said(headline)}</p>`;
}

/** @param {Trigger} trigger @param {State} state @param {Actions} act */
function buttonsView({ id, enabled, type, broken }, state, act) {
  const off = Boolean(state.pending[id]);
  if (state.confirming === id) {
    const remove = () => act.removeTrigger(id);
    return parts.confirmView(act, t("triggers.confirm"), t("triggers.removeYes"), remove);
  }
  const order = (/** @type {"run" | "pause" | "resume"} */ what, /** @type {string} */ sign) =>
    button(t(`triggers.${what}`), () => act.orderTrigger(id, what), { sign, off });
  const orders = html`${order("run", "play")} ${enabled ? order("pause", "pause") : order("resume", "play")}`;
  const edit = html`<a class="button small" href="#/trigger/${id}/edit">${icon("edit")}${t("triggers.edit")}</a>`;
  return html`<div class="trigger-actions">
    ${type === "broken" ? nothing : orders /* of the others nothing is known but the file */}
    ${broken ? nothing : edit}
    ${iconButton("trash", t("triggers.remove"), () => act.ask(id), { off })}
  </div>`;
}

/** @param {Job | undefined} job @param {Trigger | null} trigger @param {State} state @param {Actions} act  How the last run went. */
function resultView(job, trigger, state, act) {
  if (!job?.outcome) return nothing;
  const end = trigger && lastEnd(trigger);
  const retry = () => act.orderJob(job, "retry");
  const off = Boolean(state.pending[job.taskId]);
  const inside = html`<p class="row-meta">
      ${end ? html`${stateIcon(end.state)}${since(end.at, state.now)}` : nothing}
      <a href="#/task/${job.outcome.taskId}">${t("trigger.open")}</a>${trigger ? runMarks(trigger.recent) : nothing}
    </p>
    ${outcomeView(job)}
    ${job.state === "failed" ? button(t("task.retry"), retry, { sign: "retry", off }) : nothing}`;
  return parts.sectionView(t("trigger.result"), inside, "trigger-result");
}

/** @param {Trigger} trigger @param {State} state */
function factsView(trigger, { now, triggerDetail }) {
  const { enabled, nextRunAt, lastRunAt, createdAt, cooldown, fireCount, requestCount } = trigger;
  const used = triggerDetail?.usage;
  return parts.factsList([
    ["trigger.next", enabled && nextRunAt && ago(nextRunAt, now)],
    ["trigger.last", lastRunAt ? since(lastRunAt, now) : !trigger.recent.length && t("triggers.never")],
    ["trigger.fired", t("trigger.times", { fired: fireCount, requested: requestCount })],
    ["task.seat", word("profile", trigger.profile)],
    ["form.cooldown", cooldown && duration(cooldown * 1000, language())],
    ["trigger.once", trigger.once && t("trigger.onceYes")],
    ["form.overlap", trigger.overlap === "queue" && t("form.overlap.queue")],
    ["form.notify", said(trigger.told)],
    ["usage.today", used?.runs && parts.usageWords(used)],
    ["task.created", createdAt && since(createdAt, now)],
  ]);
}

/** @param {Explanation} explanation @param {string} words when it runs: that stands above @param {State} state */
function whyView({ lines: all, nodes }, words, state) {
  const lines = all.map(said).filter((line) => !words || !line.includes(words));
  if (!lines.length && !nodes.length) return nothing;
  const tree = html`<ul class="nodes" aria-label=${t("trigger.condition")}>
    ${nodes.map((node) => nodeView(node, state))}
  </ul>`;
  const inside = html`${lines.map((line) => html`<p class="why-line">${line}</p>`)}
  ${nodes.length ? tree : nothing}`;
  return parts.sectionView(t("trigger.why"), inside);
}

/** @param {NodeExplanation} node @param {State} state */
function nodeView({ path, depth, type, words, holds, why, at }, state) {
  const stands = holds === null ? "open" : holds ? "holds" : "holdsNot";
  const whys = [said(why), at && ago(at, state.now)].filter(Boolean);
  return html`<li class="node depth-${Math.min(depth, 4)}" data-path=${path}>
    ${stateIcon(stands)}
    <div>
      <p>${said(words) || type}</p>
      <p class="node-why">${whys.map((one) => html`<span>${one}</span>`)}</p>
    </div>
  </li>`;
}

/** @param {SlotExplanation[]} slots @param {State} state */
function slotsView(slots, state) {
  if (!slots.length) return nothing;
  const heads = ["trigger.slotAt", "trigger.slotState", "trigger.slotTask"];
  const table = html`<div class="slots-box table-box">
    <table class="slots">
      <thead><tr>${heads.map((head) => html`<th scope="col">${t(head)}</th>`)}</tr></thead>
      <tbody>${slots.map((slot) => slotView(slot, state))}</tbody>
    </table>
  </div>`;
  return parts.sectionView(t("trigger.slots"), table);
}

/** @param {SlotExplanation} slot @param {State} state */
function slotView({ at, state: went, reason, missed, taskId }, { tasks }) {
  const why = [said(reason), missed ? tn("trigger.missed", missed) : ""].filter(Boolean);
  const task = taskId ? tasks[taskId] : undefined;
  const open = html`<a href="#/task/${taskId}"
    >${task ? stateIcon(task.state) : nothing}${t("trigger.open")}</a
  >`;
  return html`<tr class="is-${went}">
    <td>${parts.stamped(at)}</td>
    <td>
      <span class="slot-state state-${went}">${t(`slot.${went}`)}</span>
      ${why.map((text) => html`<span class="slot-why">${text}</span>`)}
    </td>
    <td>${taskId ? open : nothing}</td>
  </tr>`;
}
