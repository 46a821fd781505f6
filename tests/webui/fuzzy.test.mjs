// A few letters find the thing that is meant, in Latin and Chinese script.

import assert from "node:assert/strict";
import { test } from "node:test";

import { fuzzy, ranked } from "../../webui/js/fuzzy.js";

const NAMES = [
  ["New trigger", "schedule cron 新建 触发器 定时"],
  ["New note", "memory 笔记"],
  ["Triggers", "schedule cron 触发器"],
  ["Tasks", "work jobs queue 任务"],
  ["Appearance: dark", "theme night 主题 深色"],
  ["Nightly backup of the database", ""],
  ["数据库每晚备份", ""],
  ["Log out", "sign out 退出"],
];
const items = NAMES.map(([title, beside]) => ({ title, beside }));
const found = (query) => ranked(query, items).map((item) => item.title);

for (const [query, first] of [
  ["nt", "New trigger"],
  ["newt", "New trigger"],
  ["trig", "Triggers"],
  ["tasks", "Tasks"],
  ["TASKS", "Tasks"],
  ["ｔａｓｋｓ", "Tasks"],
  ["dark", "Appearance: dark"],
  ["ad", "Appearance: dark"],
  ["night", "Nightly backup of the database"],
  ["backup night", "Nightly backup of the database"],
  ["nbd", "Nightly backup of the database"],
  ["备份", "数据库每晚备份"],
  ["数备", "数据库每晚备份"],
  ["触发器", "Triggers"],
  ["退出", "Log out"],
  ["sign", "Log out"],
  ["theme", "Appearance: dark"],
]) {
  test(`${query} means ${first}`, () => assert.equal(found(query)[0], first));
}

for (const query of ["xyz", "tasks xyz", "ksat", "备数", "egtb", "heme"]) {
  test(`${query} means nothing`, () => assert.deepEqual(found(query), []));
}

test("nothing typed is everything, as it stands", () => {
  assert.deepEqual(found("  "), NAMES.map(([title]) => title));
});

test("what is found in the name is marked, what stands beside it is not", () => {
  assert.deepEqual(fuzzy("nt", "New trigger").marks, [[0, 1], [4, 5]]);
  assert.deepEqual(fuzzy("trig new", "New trigger").marks, [[0, 3], [4, 8]]);
  assert.deepEqual(fuzzy("备份", "数据库每晚备份").marks, [[5, 7]]);
  assert.deepEqual(fuzzy("cron", "New trigger", "cron").marks, []);
  assert.deepEqual(fuzzy("ß", "Straße").marks, [[4, 5]]);
});

test("a name is better than a word beside it, the beginning better than the middle", () => {
  const score = (query, title, beside) => fuzzy(query, title, beside)?.score ?? -Infinity;
  assert.ok(score("usage", "Usage") > score("usage", "Tokens", "usage"));
  assert.ok(score("log", "Logs") > score("log", "Backlog"));
  assert.ok(score("mem", "Memory") > score("mem", "Remember"));
});
