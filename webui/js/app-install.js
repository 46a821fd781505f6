/** The page as an app of its own: its worker, and the browser's offer to install it. */

import { workerAddress } from "./html.js";

/**
 * @typedef {"insecure" | "none" | "ready"} Installing whether it can be installed now
 *
 * @typedef {Event & {prompt: () => Promise<unknown>}} Offer
 */

export class AppInstall {
  /** @param {import("./store.js").Store} store */
  constructor(store) {
    this.store = store;
    /** @type {Offer | null} */
    this.offer = null;
    addEventListener("beforeinstallprompt", (event) => {
      event.preventDefault(); // asked for in the settings, never by itself
      this.offer = /** @type {Offer} */ (event);
      store.set({ install: "ready" });
    });
    addEventListener("appinstalled", () => {
      this.offer = null;
      store.set({ install: "none" });
    });
  }

  async install() {
    const { offer } = this;
    this.offer = null; // the browser takes each once
    this.store.set({ install: "none" });
    await offer?.prompt();
  }

  /** Once the page stands: nothing waits for it. */
  register() {
    if (!("serviceWorker" in navigator)) return;
    const begin = () =>
      navigator.serviceWorker.register(workerAddress(), { updateViaCache: "none" }).catch(() => {
        // closed to the page, as in a private window: it works without
      });
    if (document.readyState === "complete") void begin();
    else addEventListener("load", begin, { once: true });
  }
}
