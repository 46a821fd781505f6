/** What a task changed: files, and their lines; what is long is folded, what is missing is told. */

import { guard, html, icon, nothing } from "../core/html.js";
import { language, t, tn } from "../core/i18n.js";
import { numbered } from "../core/select.js";
import { shown } from "../core/shown.js";
import { count } from "../core/time.js";
import { button, word } from "../ui/parts.js";

/** Files that are open from the start, and lines of one part that are shown before it is unfolded. */
const OPEN_FILES = 10;
const OPEN_LINES = 200;
const PART_LINES = 40;
const HEADS = ["diff.before", "diff.after", "diff.line"];
const MARK = { "+": "added", "-": "removed", "\\": "note" };

/** @param {TaskPage} detail @param {Actions} act */
export function diffView(detail, act) {
  const { diff, diffLoad, unfolded } = detail;
  if (diffLoad === "failed") {
    return html`<section>
      <h3>${t("diff.title")}</h3>
      <p class="error-text">${t("diff.failed")}</p>
    </section>`;
  }
  if (!diff) return nothing;
  return guard([diff, unfolded, language()], () => filesView(diff, unfolded, act));
}

/** @param {Diff} diff @param {Record<string, boolean>} unfolded @param {Actions} act */
function filesView(diff, unfolded, act) {
  const attempts = new Set(diff.files.map((file) => file.attempt)).size > 1;
  const total = diff.files.length + diff.moreFiles;
  return html`<section class="diff" aria-labelledby="diff-title">
    <h3 id="diff-title">${tn("diff.files", total)}</h3>
    ${diff.files.map((file, number) => fileView(file, number, attempts, unfolded, act))}
    ${missing(diff).map((text) => html`<p class="diff-note">${text}</p>`)}
  </section>`;
}

/** @param {Diff} diff  What is not there, in words. */
function missing(diff) {
  const { moreFiles, interrupted, unseen } = diff;
  return [
    moreFiles ? tn("diff.more", moreFiles) : "",
    interrupted ? tn("diff.interrupted", interrupted) : "",
    unseen.length ? t("diff.unseen", { folders: unseen.join(", ") }) : "",
  ].filter(Boolean);
}

/**
 * @param {FileDiff} file
 * @param {number} number
 * @param {boolean} attempts there are several
 * @param {Record<string, boolean>} unfolded
 * @param {Actions} act
 */
function fileView(file, number, attempts, unfolded, act) {
  const lines = file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
  const key = `${number}`;
  const notes = fileNotes(file, attempts);
  const empty = !file.hunks.length && !notes.length;
  const open = unfolded[key] ?? (number < OPEN_FILES && lines <= OPEN_LINES);
  const head = html`<span class="badge">${word("diff.action", file.action)}</span>
    <code class="diff-path">${file.fromPath ? `${file.fromPath} → ` : ""}${file.path}</code>
    ${
      file.unshown
        ? nothing
        : html`<span class="diff-count"
            ><ins>+${file.added}</ins> <del>−${file.removed}</del></span
          >`
    }`;
  if (empty) return html`<div class="diff-file"><p class="diff-head">${head}</p></div>`;
  return html`<div class="diff-file" data-file=${file.path}>
    <button
      type="button"
      class="diff-head"
      aria-expanded=${open}
      @click=${() => act.unfold(key, !open)}
    >
      ${icon(open ? "chevron-down" : "chevron-right")}${head}
    </button>
    ${open ? notes.map((text) => html`<p class="diff-note">${text}</p>`) : nothing}
    ${open && file.hunks.length ? linesView(file, key, unfolded, act) : nothing}
  </div>`;
}

/** @param {FileDiff} file @param {boolean} attempts  What else is to be said of it. */
function fileNotes(file, attempts) {
  const { oldSize, newSize, oldMode, newMode, unshown, cutLines, shared, attempt } = file;
  const lang = language();
  const size = [oldSize, newSize]
    .filter((bytes) => bytes !== null)
    .map((bytes) => tn("diff.bytes", bytes ?? 0, { n: count(bytes ?? 0, lang) }))
    .join(" → ");
  return [
    attempts ? t("diff.attempt", { n: attempt }) : "",
    newMode ? t("diff.mode", { from: oldMode ?? "", to: newMode }) : "",
    unshown ? t(`diff.unshown.${unshown}`, { size }) : "",
    cutLines ? tn("diff.cut", cutLines, { n: count(cutLines, lang) }) : "",
    shared ? t("diff.shared") : "",
  ].filter(Boolean);
}

/** @param {FileDiff} file @param {string} key @param {Record<string, boolean>} unfolded @param {Actions} act */
function linesView(file, key, unfolded, act) {
  return html`<div
    class="table-box diff-box"
    tabindex="0"
    role="region"
    aria-label=${t("diff.of", { path: file.path })}
  >
    <table class="diff-lines">
      <thead class="sr-only">
        <tr>
          ${HEADS.map((head) => html`<th scope="col">${t(head)}</th>`)}
        </tr>
      </thead>
      ${file.hunks.map((hunk, number) => hunkView(hunk, `${key}.${number}`, unfolded, act))}
    </table>
  </div>`;
}

/** @param {DiffHunk} hunk @param {string} key @param {Record<string, boolean>} unfolded @param {Actions} act */
function hunkView(hunk, key, unfolded, act) {
  const whole = unfolded[key] || hunk.lines.length <= PART_LINES * 1.5;
  const rows = numbered(hunk).slice(0, whole ? undefined : PART_LINES);
  const left = hunk.lines.length - rows.length;
  return html`<tbody>
    <tr class="diff-at">
      <td colspan="3">${t("diff.from", { n: hunk.newStart || hunk.oldStart })}</td>
    </tr>
    ${rows.map(rowView)}
    ${
      left
        ? html`<tr class="diff-at">
            <td colspan="3">${button(tn("diff.unfold", left), () => act.unfold(key, true))}</td>
          </tr>`
        : nothing
    }
  </tbody>`;
}

/** @param {ReturnType<typeof numbered>[number]} row */
function rowView({ mark, text, before, after }) {
  const kind = /** @type {Record<string, string>} */ (MARK)[mark] ?? "same";
  const line = kind === "note" ? t("diff.noEnd") : shown(text);
  const told =
    kind === "added"
      ? html`<ins>${line}</ins>`
      : kind === "removed"
        ? html`<del>${line}</del>`
        : line;
  const sign = kind === "added" ? "+" : kind === "removed" ? "−" : " ";
  return html`<tr class="diff-${kind}">
    <td class="diff-number">${before ?? ""}</td>
    <td class="diff-number">${after ?? ""}</td>
    <td class="diff-text"><span class="diff-sign" aria-hidden="true">${sign}</span>${told}</td>
  </tr>`;
}
