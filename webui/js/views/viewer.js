/** One picture, as large as there is room. */

import { html, icon, render } from "../html.js";
import { t } from "../i18n.js";

/**
 * @param {import("../types.js").SentFile} file
 * @param {string} url
 * @param {() => void} save
 */
export function viewPicture(file, url, save) {
  const box = document.createElement("dialog");
  box.className = "viewer";
  box.setAttribute("aria-label", file.name);
  render(
    html`<img src=${url} alt=${file.name} />
      <div class="viewer-bar">
        <span class="viewer-name">${file.name}</span>
        <button type="button" class="small" @click=${save}>${icon("down")}${t("files.download")}</button>
        <button
          type="button"
          class="icon-button"
          aria-label=${t("files.close")}
          @click=${() => box.close()}
        >
          ${icon("x")}
        </button>
      </div>`,
    box,
  );
  box.addEventListener("click", (event) => {
    if (event.target === box) box.close();
  });
  box.addEventListener("close", () => box.remove()); // focus goes back by itself
  document.body.append(box);
  box.showModal();
}
