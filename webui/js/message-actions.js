/** What can be done with a message: copied, quoted, said anew, asked about. */

import { copyText } from "./copy.js";
import { attached } from "./file-state.js";
import { messageOf, MOST_QUOTED } from "./message-state.js";

/**
 * @typedef {import("./store.js").Store} Store
 *
 * @typedef {import("./state-types.js").Composing["about"]} About
 *
 * @typedef {object} Help what the page does for these
 * @property {() => void} focusComposer
 * @property {(act: () => void, ms: number) => void} later
 * @property {(files: import("./state-types.js").Attachment[]) => void} letGo
 */

/** So long a button says that it has copied. */
const COPIED_MS = 1800;

export class MessageActions {
  /** @param {Store} store @param {Help} help */
  constructor(store, help) {
    this.store = store;
    this.help = help;
  }

  /** @private @param {string} id  One of the conversation, or one that still waits. */
  find(id) {
    return messageOf(this.store.state, id);
  }

  /** @param {Partial<import("./state-types.js").State["tools"]>} values  Of which message the actions are shown. */
  show(values) {
    this.store.dispatch({ type: "tools", values });
  }

  /** @param {string} id  Its text as it was written: Markdown. */
  async copy(id) {
    const found = this.find(id);
    if (!found || !(await copyText(found.text))) return;
    this.show({ copied: id });
    this.help.later(() => {
      if (this.store.state.tools.copied === id) this.show({ copied: "" });
    }, COPIED_MS);
  }

  /** @param {string} id @param {string} [part] what of it was marked */
  quote(id, part = "") {
    const found = this.find(id);
    if (!found) return;
    const text = [...(part.trim() || found.text)].slice(0, MOST_QUOTED).join("");
    this.compose({ about: { how: "quote", id, text, before: "", files: [] } });
  }

  /** @param {string} id  The same again, in other words: it goes out as a message that says so. */
  edit(id) {
    const found = this.find(id);
    if (!found) return;
    const { draft, files, composing } = this.store.state;
    const another = composing.about?.how === "edit" ? composing.about : null;
    if (another) this.help.letGo(files);
    const aside = { before: another?.before ?? draft, files: another?.files ?? files };
    this.compose({ about: { how: "edit", id, text: found.text, ...aside } });
    this.store.set({ draft: found.text, files: (found.files ?? []).map(attached) });
  }

  /** Write without quoting or replacing anything; what was being written before is there again. */
  forget() {
    const { about } = this.store.state.composing;
    this.compose({ about: null });
    this.goOn(about);
  }

  /** @param {About} about  What was being written before a message was said anew is there again. */
  goOn(about) {
    if (about?.how !== "edit") return;
    this.help.letGo(this.store.state.files);
    this.store.set({ draft: about.before, files: about.files });
  }

  /** @param {boolean} yes write the answer to the open question, or something else */
  answerHere(yes) {
    const id = this.store.state.question?.questionId ?? "";
    this.compose(yes ? { answers: id, about: null } : { answers: "" });
  }

  /** @private @param {Partial<import("./state-types.js").Composing>} values */
  compose(values) {
    const { about } = this.store.state.composing;
    if (values.about?.how === "quote" && about) this.help.letGo(about.files);
    const next = values.about ? { answers: "", ...values } : values; // an answer quotes nothing
    this.store.dispatch({ type: "composing", values: next });
    this.help.focusComposer();
  }

  /** @param {import("./state-types.js").OutboxItem} item  What it quoted, or said anew, it does again. */
  takeBack({ quote, edits }) {
    if (!quote) return;
    const { about } = this.store.state.composing;
    const { before, files } = edits && about ? about : { before: "", files: [] };
    const how = edits ? "edit" : "quote";
    this.compose({ about: { how, id: edits ?? "", text: quote, before, files } });
  }

  /** What goes out with the text that is written, once. */
  taken() {
    const { about } = this.store.state.composing;
    if (!about) return {};
    this.store.dispatch({ type: "composing", values: { about: null } });
    const quote = [...about.text].slice(0, MOST_QUOTED).join("");
    return about.how === "edit" ? { quote, edits: about.id } : { quote };
  }
}
