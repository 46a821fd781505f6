// Who comes while the server is away is told so. It keeps nothing: no page that could grow stale,
// nothing of what anybody said. All but the page itself goes by it, /api above all.

const WORDS = {
  en: ["mimikit cannot be reached", "It is not running, or you are offline. This page tries again by itself.", "Try now"],
  zh: ["无法连接 mimikit", "程序没有运行，或者设备离线。本页面会自动重试。", "立即重试"],
};
const STYLE = `
  :root { color-scheme: light dark; }
  body { display: grid; place-content: center; justify-items: center; gap: .5rem; min-height: 100dvh;
    margin: 0; padding: 1rem; box-sizing: border-box; text-align: center;
    background: light-dark(#f6f8fa, #0c0f13); color: light-dark(#17202a, #e3e8ed);
    font: 400 1rem/1.6 -apple-system, "Segoe UI", "PingFang SC", "Noto Sans CJK SC", sans-serif; }
  h1 { margin: 0; font-size: 1.375rem; font-weight: 600; }
  p { margin: 0; max-width: 26rem; text-wrap: balance; color: light-dark(#54606d, #9ba7b3); }
  a { margin-top: .75rem; color: light-dark(#0b6783, #52b6d2); }`;

addEventListener("install", (event) => {
  skipWaiting();
  // What is no page is not even asked for here, where the browser can be told so.
  const past = [{ condition: { not: { requestMode: "navigate" } }, source: "network" }];
  if (event.addRoutes) event.waitUntil(event.addRoutes(past).catch(() => undefined));
});

addEventListener("activate", (event) => {
  event.waitUntil(registration.navigationPreload?.enable());
});

addEventListener("fetch", (event) => {
  const { mode, url } = event.request;
  if (mode === "navigate" && new URL(url).pathname === "/") event.respondWith(page(event));
});

async function page(event) {
  try {
    return (await event.preloadResponse) ?? (await fetch(event.request));
  } catch {
    return away();
  }
}

function away() {
  const chinese = /^zh\b/i.test(navigator.language);
  const [title, text, again] = WORDS[chinese ? "zh" : "en"];
  const body = `<!doctype html>
<html lang="${chinese ? "zh-CN" : "en"}">
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="5"><title>mimikit</title><style>${STYLE}</style>
<h1>${title}</h1><p role="status">${text}</p><a href="/">${again}</a></html>`;
  return new Response(body, {
    status: 503,
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Cache-Control": "no-store",
      "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'",
    },
  });
}

addEventListener("notificationclick", (event) => {
  event.notification.close();
  const { hash } = event.notification.data ?? {};
  event.waitUntil(open(hash ?? "#/"));
});

async function open(hash) {
  const [page] = await clients.matchAll({ type: "window" });
  if (!page) return clients.openWindow(`/${hash}`);
  page.postMessage({ kind: "visit", hash });
  return page.focus();
}
