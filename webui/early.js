// Runs before the first paint, so that a chosen theme or language never flashes. No module: it
// must not wait for one.
(function () {
  try {
    var root = document.documentElement;
    var theme = localStorage.getItem("mimikit.theme");
    var language = localStorage.getItem("mimikit.language");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    if (language === "zh") root.lang = "zh-CN";
  } catch (error) {
    // Storage is closed to the page: the system's theme and the browser's language hold.
  }
})();
