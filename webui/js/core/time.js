/** Times and durations in words, by `Intl` alone. Nothing here knows the clock: `now` is given. */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The reader's time zone, by its IANA name. */
export const ownZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** @type {[Intl.RelativeTimeFormatUnit, number][]}  The largest first. */
const UNITS = [
  ["day", DAY],
  ["hour", HOUR],
  ["minute", MINUTE],
  ["second", SECOND],
];

/** @type {Record<string, string>} */
const LOCALES = { en: "en-GB", zh: "zh-CN" };

/** @type {Map<string, any>} */
const formats = new Map();

/**
 * One formatter per kind, language and options; making them is slow.
 *
 * @template T
 * @param {new (locale: string, options: any) => T} Kind
 * @param {string} language
 * @param {object} [options]
 * @returns {T}
 */
function formatter(Kind, language, options) {
  const key = `${Kind.name}|${language}|${JSON.stringify(options)}`;
  if (!formats.has(key)) formats.set(key, new Kind(LOCALES[language] ?? language, options));
  return formats.get(key);
}

/**
 * @param {string} language
 * @param {Intl.DateTimeFormatOptions} options
 * @param {string} [timeZone] the reader's own, unless given
 */
function dateFormat(language, options, timeZone) {
  return formatter(Intl.DateTimeFormat, language, { ...options, timeZone });
}

/** @param {Intl.DateTimeFormatOptions} options */
function formatted(options) {
  return (
    /** @type {string | number} */ at,
    /** @type {string} */ language,
    /** @type {string | undefined} */ zone = undefined,
  ) => dateFormat(language, options, zone).format(new Date(at));
}

/** @type {Intl.DateTimeFormatOptions} */
const CLOCK = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
/** @type {Intl.DateTimeFormatOptions} */
const DATE = { day: "numeric", month: "short" };

/** `14:32`, in the reader's zone unless another is given. */
export const clockTime = formatted(CLOCK);
/** `Mon, 23 Nov, 09:00` */
export const dayTime = formatted({ weekday: "short", ...DATE, ...CLOCK });
/** `22 Nov, 09:00:01` */
export const stamp = formatted({ ...DATE, ...CLOCK, second: "2-digit" });
/** The whole of it, to the second and with its zone: for titles. */
export const fullTime = formatted({
  ...{ weekday: "short", ...DATE, year: "numeric" },
  ...{ ...CLOCK, second: "2-digit", timeZoneName: "short" },
});

/**
 * The calendar day an instant falls on for the reader: `2026-11-21`, as Swedes write it.
 *
 * @param {string | number} at
 * @param {string} [zone]
 */
export function dayKey(at, zone) {
  const options = /** @type {const} */ ({ year: "numeric", month: "2-digit", day: "2-digit" });
  return dateFormat("sv", options, zone).format(new Date(at));
}

/**
 * A day as a separator names it: today, yesterday, or the date.
 *
 * @param {string | number} at
 * @param {number} now
 * @param {string} language
 * @param {string} [zone]
 */
export function dayName(at, now, language, zone) {
  return dateName(dayKey(at, zone), dayKey(now, zone), language);
}

/**
 * The same for a date without a time.
 *
 * @param {string} day `2026-11-21`
 * @param {string} today
 * @param {string} language
 */
export function dateName(day, today, language) {
  const days = Math.round((noon(today) - noon(day)) / DAY);
  if (days === 0 || days === 1) {
    const words = formatter(Intl.RelativeTimeFormat, language, { numeric: "auto" }).format(-days, "day");
    return words.charAt(0).toLocaleUpperCase(LOCALES[language]) + words.slice(1);
  }
  const year =
    today.slice(0, 4) === day.slice(0, 4) ? {} : /** @type {const} */ ({ year: "numeric" });
  const options = /** @type {const} */ ({ weekday: "long", day: "numeric", month: "long" });
  return dateFormat(language, { ...options, ...year }, "UTC").format(noon(day));
}

/**
 * `November 2026`
 *
 * @param {string} month `2026-11`, or a day of it
 * @param {string} language
 */
export function monthName(month, language) {
  const options = /** @type {const} */ ({ month: "long", year: "numeric" });
  return dateFormat(language, options, "UTC").format(noon(`${month.slice(0, 7)}-15`));
}

/** @param {string} key */
function noon(key) {
  return Date.parse(`${key}T12:00:00Z`);
}

/**
 * How far away an instant is: `3 minutes ago`, `in 2 hours`.
 *
 * @param {string | number} at
 * @param {number} now
 * @param {string} language
 */
export function relativeTime(at, now, language) {
  const away = new Date(at).getTime() - now;
  const [name, size] = UNITS.find(([, least]) => Math.abs(away) >= least) ?? ["second", SECOND];
  return formatter(Intl.RelativeTimeFormat, language).format(Math.round(away / size), name);
}

/** @param {number} ms  A running clock: `0:04`, `12:07`, `1:02:03`. */
export function elapsed(ms) {
  const total = Math.max(0, Math.floor(ms / SECOND));
  const hours = Math.floor(total / 3600);
  const minutes = Math.floor(total / 60) % 60;
  const seconds = String(total % 60).padStart(2, "0");
  return hours
    ? `${hours}:${String(minutes).padStart(2, "0")}:${seconds}`
    : `${minutes}:${seconds}`;
}

/**
 * A length of time in words, to two units: `350ms`, `4.2s`, `2m 3s`, `1h 4m`, `3d`.
 *
 * @param {number} ms
 * @param {string} language
 */
export function duration(ms, language) {
  if (ms < SECOND) return unit(Math.round(ms), "millisecond", language);
  if (ms < 10 * SECOND) return unit(Math.round(ms / 100) / 10, "second", language);
  if (ms < MINUTE) return unit(Math.round(ms / SECOND), "second", language);
  const at = UNITS.findIndex(([, size]) => ms >= size);
  const [[name, size], [lesser, lesserSize]] = UNITS.slice(at);
  const rest = Math.floor((ms % size) / lesserSize);
  const words = unit(Math.floor(ms / size), name, language);
  return rest ? `${words} ${unit(rest, lesser, language)}` : words;
}

/** @param {number} value @param {string} name @param {string} language */
function unit(value, name, language) {
  const options = { style: "unit", unit: name, unitDisplay: "narrow" };
  return formatter(Intl.NumberFormat, language, options).format(value);
}

/** @param {number} bytes @param {string} language  The size of a file: `640B`, `1.2kB`, `3MB`. */
export function fileSize(bytes, language) {
  if (bytes < 1000) return unit(bytes, "byte", language);
  const large = bytes >= 1e6;
  const value = bytes / (large ? 1e6 : 1000);
  const rounded = value < 10 ? Math.round(value * 10) / 10 : Math.round(value);
  return unit(rounded, large ? "megabyte" : "kilobyte", language);
}

/** @param {number} value @param {string} language  A whole number with its separators. */
export function count(value, language) {
  return formatter(Intl.NumberFormat, language).format(value);
}
