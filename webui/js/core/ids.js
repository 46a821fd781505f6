/** Ids made here: sortable by time, safe as file names, the same shape as the server's. */

const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";

/**
 * A fresh id: the prefix and a ULID in lower-case Crockford base32.
 *
 * Making it here is what lets a message be sent twice and kept once.
 *
 * @param {string} prefix
 * @param {number} [now] milliseconds
 * @param {Uint8Array} [random] ten bytes
 * @returns {string}
 */
export function newId(prefix, now = Date.now(), random = crypto.getRandomValues(new Uint8Array(10))) {
  let value = BigInt(now);
  for (const byte of random) value = (value << 8n) | BigInt(byte);
  let text = "";
  for (let shift = 125n; shift >= 0n; shift -= 5n) text += ALPHABET[Number((value >> shift) & 31n)];
  return `${prefix}-${text}`;
}

/** @param {string} text  Ten bytes that are the same for the same text, which no secret hangs on. */
export function bytesOf(text) {
  const bytes = new Uint8Array(10);
  let hash = 0x811c9dc5;
  for (const [at, byte] of [...new TextEncoder().encode(text), ...bytes].entries()) {
    hash = Math.imul(hash ^ byte ^ at, 0x01000193);
    bytes[at % 10] ^= hash >>> 24;
  }
  return bytes;
}
