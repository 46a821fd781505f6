/**
 * How a message's actions are reached: by the pointer, by the keyboard, by a long press.
 *
 * One message at a time has them open; the others have the first alone, so that pages stay light.
 */

/** @typedef {import("./message-actions.js").MessageActions} MessageActions */

const PRESS_MS = 480;
/** A finger that moves so far scrolls. */
const SLACK = 10;
/** What a long press means there is the browser's own. */
const OWN_PRESS = "a, button, input, textarea, select, summary, pre";

export class MessageTools {
  /** @param {MessageActions} act @param {() => void} leave  Back to where one writes. */
  constructor(act, leave) {
    this.act = act;
    this.leave = leave;
    /** @type {{id: string, x: number, y: number, timer: ReturnType<typeof setTimeout>} | null} */
    this.press = null;
    this.held = false; // the finger that opened the sheet has not come back
  }

  listen() {
    document.addEventListener("pointerover", (event) => {
      if (event.pointerType !== "touch") this.act.show({ hover: messageAt(event.target) });
    });
    document.documentElement.addEventListener("pointerleave", () => this.act.show({ hover: "" }));
    document.addEventListener("focusin", ({ target }) => {
      const bar = barAt(target);
      this.act.show({ focus: messageAt(target) });
      if (bar) rove(/** @type {HTMLElement} */ (bar.firstElementChild));
    });
    document.addEventListener("keydown", (event) => this.onKey(event));
    document.addEventListener("pointerdown", (event) => this.onDown(event), { passive: true });
    document.addEventListener("pointermove", (event) => this.onMove(event), { passive: true });
    for (const name of ["pointerup", "pointercancel", "scroll"]) {
      document.addEventListener(name, () => this.lift(), { capture: true, passive: true });
    }
    document.addEventListener("click", (event) => this.onClick(event), { capture: true });
    document.addEventListener("contextmenu", (event) => {
      // Phones ask for their menu, and mark a word, at a long press.
      const byTouch = /** @type {PointerEvent} */ (event).pointerType === "touch";
      if (byTouch && pressedAt(event.target)) event.preventDefault();
    });
  }

  /** Once the page is drawn: the tab key finds one bar, and the sheet is open or closed. */
  after() {
    if (!document.querySelector('.tools > [tabindex="0"]')) {
      const last = [...document.querySelectorAll(".tools > :first-child")].at(-1);
      if (last) rove(/** @type {HTMLElement} */ (last));
    }
    const sheet = /** @type {HTMLDialogElement | null} */ (document.getElementById("message-sheet"));
    if (!sheet) return;
    const wanted = sheet.dataset.of !== "";
    if (wanted && !sheet.open) sheet.showModal();
    else if (!wanted && sheet.open) sheet.close();
  }

  /** @private @param {KeyboardEvent} event */
  onKey(event) {
    const { target, key } = event;
    const isRead = key === "ArrowRight" && target instanceof Element && target.matches(".message");
    const bar = isRead ? target.querySelector(".tools") : barAt(target);
    if (!(bar instanceof HTMLElement) || event.ctrlKey || event.metaKey || event.altKey) return;
    const next = event.key === "Escape" ? null : this.nextOf(bar, event);
    if (next === undefined) return;
    event.preventDefault();
    if (next === null) this.leave();
    else next.focus();
  }

  /** @private @param {HTMLElement} bar @param {KeyboardEvent} event @returns {HTMLElement | undefined} */
  nextOf(bar, { key, target }) {
    const inside = [...bar.children].filter((one) => one.matches("a, button"));
    const at = inside.indexOf(/** @type {Element} */ (target)); // -1: from the message into its bar
    const beside = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: inside.length - 1 }[key];
    if (beside !== undefined) return /** @type {HTMLElement} */ (inside.at(beside % inside.length));
    if (key !== "ArrowUp" && key !== "ArrowDown") return undefined;
    const bars = [...document.querySelectorAll(".tools")];
    const to = bars[bars.indexOf(bar) + (key === "ArrowUp" ? -1 : 1)] ?? bar;
    return /** @type {HTMLElement} */ (to.firstElementChild);
  }

  /** @private @param {PointerEvent} event */
  onDown({ pointerType, target, clientX, clientY, isPrimary }) {
    this.lift();
    this.held = false;
    const id = pointerType === "touch" && isPrimary ? pressedAt(target) : "";
    if (!id) return;
    const timer = setTimeout(() => {
      this.press = null;
      this.held = true;
      getSelection()?.removeAllRanges();
      this.act.show({ sheet: id });
    }, PRESS_MS);
    this.press = { id, x: clientX, y: clientY, timer };
  }

  /** @private @param {MouseEvent} event  Lifting the finger chooses nothing, and closes nothing. */
  onClick(event) {
    if (!this.held) return;
    this.held = false;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @private @param {PointerEvent} event */
  onMove({ clientX, clientY }) {
    const { press } = this;
    if (press && Math.hypot(clientX - press.x, clientY - press.y) > SLACK) this.lift();
  }

  /** @private */
  lift() {
    if (this.press) clearTimeout(this.press.timer);
    this.press = null;
  }
}

/** @param {EventTarget | null} target @returns {HTMLElement | null} */
function barAt(target) {
  return target instanceof Element ? target.closest(".tools") : null;
}

/** @param {EventTarget | null} target @returns {string} the message there that has actions */
function messageAt(target) {
  const item = target instanceof Element ? target.closest(".message") : null;
  return /** @type {HTMLElement | null} */ (item?.querySelector(".tools"))?.dataset.of ?? "";
}

/** @param {EventTarget | null} target @returns {string} the same for a finger */
function pressedAt(target) {
  const own = target instanceof Element && target.closest(OWN_PRESS);
  return own ? "" : messageAt(target);
}

/** @param {HTMLElement} first  The tab key finds this one of all bars. */
function rove(first) {
  for (const one of document.querySelectorAll('.tools > [tabindex="0"]')) {
    if (one !== first) /** @type {HTMLElement} */ (one).tabIndex = -1;
  }
  first.tabIndex = 0;
}
