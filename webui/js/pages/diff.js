/** What a task changed: files, and their lines; what is long is folded, what is missing is told. */

import { guard, html, icon, nothing } from "../core/html.js";
import { language, t, tn } from "../core/i18n.js";
import { numbered } from "../core/select.js";
import { shown } from "../core/shown.js";
import { count } from "../core/time.js";
import { button, sectionView, word } from "../ui/parts.js";

/** Files that are open from the start, and lines of one part that are shown before it is unfolded. */
const OPEN_FILES = 10;
const OPEN_LINES = 200;
const PART_LINES = 40;
const HEADS = ["diff.before", "diff.after", "diff.line"];
/** @type {Record<string, [string, string]>}  By a line's mark: its class, and its sign as shown. */
const MARKS = { "+": ["added", "+"], "-": ["removed", "−"], "\\": ["note", " "] };

/** @typedef {TaskPage["unfolded"]} Folds  @typedef {Pick<Actions["keepers"]["detail"], "unfold">} Keeper */

/** @param {TaskPage} detail @param {Actions} act */
export function diffView({ diff, diffLoad, unfolded }, act) {
  const failed = html`<p class="error-text">${t("diff.failed")}</p>`;
  if (diffLoad === "failed") return sectionView(t("diff.title"), failed);
  if (!diff) return nothing;
  return guard([diff, unfolded, language()], () => filesView(diff, unfolded, act.keepers.detail));
}

/** @param {Diff} diff @param {Folds} unfolded @param {Keeper} keeper */
export function filesView({ files, moreFiles, interrupted, unseen }, unfolded, keeper) {
  const several = new Set(files.map((file) => file.attempt)).size > 1;
  return html`<section class="diff" aria-labelledby="diff-title">
    <h3 id="diff-title">${tn("diff.files", files.length + moreFiles)}</h3>
    ${files.map((file, number) => fileView(file, number, several, unfolded, keeper))}
    ${notesView([
      moreFiles && tn("diff.more", moreFiles),
      interrupted && tn("diff.interrupted", interrupted),
      unseen.length && t("diff.unseen", { folders: unseen.join(", ") }),
    ])}
  </section>`;
}

/** @param {unknown[]} notes */
function notesView(notes) {
  return notes.filter(Boolean).map((text) => html`<p class="diff-note">${text}</p>`);
}

/** @param {FileDiff} file @param {number} number @param {boolean} several @param {Folds} unfolded @param {Keeper} keeper */
function fileView(file, number, several, unfolded, keeper) {
  const lines = file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
  const key = `${number}`;
  const notes = fileNotes(file, several);
  const open = unfolded[key] ?? (number < OPEN_FILES && lines <= OPEN_LINES);
  const counts = html`<ins>+${file.added}</ins> <del>−${file.removed}</del>`;
  const head = html`<span class="badge">${word("diff.action", file.action)}</span>
    <code class="diff-path">${file.fromPath ? `${file.fromPath} → ` : ""}${file.path}</code>
    ${file.unshown ? nothing : html`<span class="diff-count">${counts}</span>`}`;
  if (!lines && !notes.length) {
    return html`<div class="diff-file"><p class="diff-head">${head}</p></div>`;
  }
  const sign = icon(open ? "chevron-down" : "chevron-right");
  const fold = () => keeper.unfold(key, !open);
  return html`<div class="diff-file" data-file=${file.path}>
    ${button(html`${sign}${head}`, fold, { look: "diff-head", expanded: open })}
    ${open ? notes : nothing} ${open && lines ? linesView(file, key, unfolded, keeper) : nothing}
  </div>`;
}

/** @param {FileDiff} file @param {boolean} several attempts  What else is to be said of it. */
function fileNotes(file, several) {
  const { oldSize, newSize, oldMode, newMode, unshown, cutLines, shared, attempt } = file;
  const lang = language();
  const size = [oldSize, newSize]
    .flatMap((bytes) => (bytes === null ? [] : tn("diff.bytes", bytes, { n: count(bytes, lang) })))
    .join(" → ");
  return notesView([
    several && t("diff.attempt", { n: attempt }),
    newMode && t("diff.mode", { from: oldMode ?? "", to: newMode }),
    unshown && t(`diff.unshown.${unshown}`, { size }),
    cutLines && tn("diff.cut", cutLines, { n: count(cutLines, lang) }),
    shared && t("diff.shared"),
  ]);
}

/** @param {FileDiff} file @param {string} key @param {Folds} unfolded @param {Keeper} keeper */
function linesView({ path, hunks }, key, unfolded, keeper) {
  return html`<div
    class="table-box diff-box"
    tabindex="0"
    role="region"
    aria-label=${t("diff.of", { path })}
  >
    <table class="diff-lines">
      <thead class="sr-only">
        <tr>
          ${HEADS.map((head) => html`<th scope="col">${t(head)}</th>`)}
        </tr>
      </thead>
      ${hunks.map((hunk, number) => hunkView(hunk, `${key}.${number}`, unfolded, keeper))}
    </table>
  </div>`;
}

/** @param {DiffHunk} hunk @param {string} key @param {Folds} unfolded @param {Keeper} keeper */
function hunkView(hunk, key, unfolded, keeper) {
  const whole = unfolded[key] || hunk.lines.length <= PART_LINES * 1.5;
  const rows = numbered(hunk).slice(0, whole ? undefined : PART_LINES);
  const left = hunk.lines.length - rows.length;
  const across = (/** @type {unknown} */ inside) =>
    html`<tr class="diff-at">
      <td colspan="3">${inside}</td>
    </tr>`;
  return html`<tbody>
    ${across(t("diff.from", { n: hunk.newStart || hunk.oldStart }))} ${rows.map(rowView)}
    ${left ? across(button(tn("diff.unfold", left), () => keeper.unfold(key, true))) : nothing}
  </tbody>`;
}

/** @param {ReturnType<typeof numbered>[number]} row */
function rowView({ mark, text, before, after }) {
  const [kind, sign] = MARKS[mark] ?? ["same", " "];
  const line = kind === "note" ? t("diff.noEnd") : shown(text);
  const removed = kind === "removed" ? html`<del>${line}</del>` : line;
  const told = kind === "added" ? html`<ins>${line}</ins>` : removed;
  return html`<tr class="diff-${kind}">
    <td class="diff-number">${before ?? ""}</td>
    <td class="diff-number">${after ?? ""}</td>
    <td class="diff-text"><span class="diff-sign" aria-hidden="true">${sign}</span>${told}</td>
  </tr>`;
}
