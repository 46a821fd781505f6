/** The conversation, and below it everything one answers with. */

import { guard, html, icon, nothing, repeat } from "../core/html.js";
import { language, t, tn } from "../core/i18n.js";
import { choiceOf, timeline } from "../core/select.js";
import { dayKey, dayName } from "../core/time.js";
import { composerView } from "./composer.js";
import { jobCard, runsLine } from "./job.js";
import { liveView } from "./live.js";
import { draftView, messageView } from "./message.js";
import { button, failedView, loading } from "../ui/parts.js";
import { questionView } from "./question.js";

/** @param {State} state @param {Actions} act */
export function chatView(state, act) {
  const away = !state.wide && state.route.view !== "chat";
  return html`<div class="chat ${away ? "is-away" : ""}" id="chat" ?inert=${away}>
    <h2 class="sr-only">${t("chat.title")}</h2>
    <div class="scroll-box">
      <div class="scroll" id="scroll" tabindex="0" role="region" aria-label=${t("chat.title")}>
        <div class="column">
          ${topView(state, act)}
          <ol class="timeline" id="timeline">
            ${repeat(timeline(state), (entry) => entry.key, (entry) => entryView(entry, state, act))}
          </ol>
        </div>
      </div>
      ${latestButton(state, act)}
    </div>
    <div class="dock">
      <div class="column">
        ${liveView(state, act)} ${questionView(state, act)} ${composerView(state, act)}
      </div>
    </div>
  </div>`;
}

/** @param {Entry} entry @param {State} state @param {Actions} act */
function entryView(entry, state, act) {
  if (entry.type === "draft") return draftView(entry);
  if (entry.type === "day") {
    const today = dayKey(state.now);
    const name = () => dayName(entry.at, state.now, language());
    return guard([entry.at, today, language()], () => html`<li class="day"><span>${name()}</span></li>`);
  }
  if (entry.type === "job") return jobCard(entry, state, act);
  if (entry.type === "runs") return runsLine(entry.job, entry.messageId, state, act);
  const { message, delivery, error, joined } = entry;
  const hits = message.turnId ? state.hits[message.turnId] : null;
  const choice = choiceOf(state, message);
  return guard([message, delivery, error, joined, hits, choice, language()], () =>
    messageView(entry, state, act),
  );
}

/** @param {State} state @param {Actions} act  What stands above the first message. */
function topView(state, act) {
  if (state.load === "loading") return loading(t("chat.loading"));
  if (state.load === "failed") return failedView(() => act.session.load(), state.loadError);
  if (state.older === "loading") return loading(t("chat.olderLoading"));
  if (state.before) {
    const older = t(state.older === "failed" ? "chat.olderFailed" : "chat.older");
    return html`<div class="older">${button(older, () => act.loadOlder(), { look: "link" })}</div>`;
  }
  const empty = !state.messages.length && !state.inbox.length && !state.outbox.length;
  return empty ? welcomeView(act) : html`<p class="beginning">${t("chat.beginning")}</p>`;
}

/** @param {Actions} act */
function welcomeView(act) {
  const examples = ["command", "recurring", "remember"];
  return html`<div class="welcome">
    <span class="welcome-mark">${icon("mark")}</span>
    <h2>${t("welcome.title")}</h2>
    <p>${t("welcome.text")}</p>
    <ul class="examples" aria-label=${t("welcome.examples")}>
      ${examples.map((name) => html`<li>${exampleButton(name, act)}</li>`)}
    </ul>
  </div>`;
}

/** @param {string} name @param {Actions} act */
function exampleButton(name, act) {
  const text = t(`welcome.${name}`);
  const label = html`<span class="example-text">${text}</span>
    <span class="example-why">${t(`welcome.${name}.why`)}</span>`;
  return button(label, () => act.editText(text, true), { look: "" });
}

/** @param {State} state @param {Actions} act */
function latestButton(state, act) {
  if (state.following) return nothing;
  const label = state.unseen ? tn("chat.new", state.unseen) : t("chat.latest");
  const look = `latest ${state.unseen ? "has-new" : ""}`;
  return button(html`<span>${label}</span>`, () => act.scroll?.toBottom(), { sign: "down", look });
}
