// Draws what the page's data say. At the end body.dataset.drawn is how many charts there are, and how many show a line.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const colours = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2", "#bcbd22", "#3b3bd6"];
const charts = [];

function size_text(bytes) {
  for (const [letter, unit] of [["G", 2 ** 30], ["M", 2 ** 20], ["K", 2 ** 10]])
    if (bytes >= unit && bytes % unit == 0) return bytes / unit + letter;
  return String(bytes);
}

function element(parent, tag, text) {
  const made = parent.appendChild(document.createElement(tag));
  if (text !== undefined) made.textContent = text;
  return made;
}

function number_text(value) {
  if (value === null || value === undefined) return "";
  const size = Math.abs(value);
  if (size >= 1e9) return (value / 1e9).toPrecision(3) + " G";
  if (size >= 1e6) return (value / 1e6).toPrecision(3) + " M";
  if (size >= 1e4) return (value / 1e3).toPrecision(3) + " k";
  return String(+value.toPrecision(4));
}

// xs: numbers that rise; lines: [{label, ys}]; x_text(x) names a place on the axis, at places alone if those are given.
function chart({title, note, xs, lines, x_label, y_label, x_text, places, is_log_x, is_log_y}) {
  const kept = lines.filter(line => line.ys.some(y => y !== null && (!is_log_y || y > 0)));
  if (kept.length === 0) return;
  const section = element(document.getElementById("charts"), "section");
  element(section, "h2", title);
  if (note) element(section, "p", note).className = "note";
  const plot = new uPlot({
    width: Math.min(960, document.documentElement.clientWidth - 40 || 960),
    height: 360,
    scales: {x: {time: false, distr: is_log_x ? 3 : 1, log: 2}, y: {distr: is_log_y ? 3 : 1}},
    axes: [
      {label: x_label, values: (_, splits) => splits.map(x => x === null ? "" : x_text(x)), ...(places ? {splits: () => places} : {})},
      {label: y_label, size: 80, values: (_, splits) => splits.map(number_text)},
    ],
    series: [
      {label: x_label, value: (_, x) => x === null ? "" : x_text(x)},
      ...kept.map((line, i) => ({label: line.label, stroke: colours[i % colours.length], width: 2, spanGaps: true,
                                 dash: i < colours.length ? [] : [6, 4], points: {show: xs.length < 40},
                                 value: (_, y) => number_text(y)})),
    ],
  }, [xs, ...kept.map(line => line.ys.map(y => y !== null && is_log_y && y <= 0 ? null : y))], section);
  charts.push(plot);
}

function by_size(key, title, y_label, note) {
  const rows = data.rows.filter(row => typeof row[key] === "number" && row[key] > 0);
  const xs = [...new Set(rows.map(row => row.size))].sort((a, b) => a - b);
  const names = [...new Set(rows.map(line_name))];
  const lines = names.map(name => ({label: name, ys: xs.map(x => rows.find(row => line_name(row) === name && row.size === x)?.[key] ?? null)}));
  chart({title, note, xs, lines, x_label: "size in bytes", y_label, x_text: size_text, places: xs, is_log_x: true, is_log_y: true});
}

function line_name(row) {
  return row.op + " " + row.path + ("loss" in row ? ", " + +(100 * row.loss).toPrecision(3) + " % lost" : "");
}

function draw_times() {
  const rows = data.rows.filter(row => row.percentiles);
  const place = percent => Math.log10(1 / (1 - percent / 100));
  const percents = data.percents;
  chart({
    title: "How long it took", note: "So many of all took this time at most: one step to the right is ten times rarer.",
    xs: percents.map(place), x_label: "share", y_label: "us", places: percents.filter(one => [0, 50, 90, 99, 99.9, 99.99].includes(one)).map(place),
    x_text: x => +(100 - 100 / 10 ** x).toPrecision(6) + " %", is_log_y: true,
    lines: rows.map(row => ({label: line_name(row) + " " + size_text(row.size), ys: row.percentiles})),
  });
}

// What moved, most first. Looks come in pairs, before and after a piece.
function draw_counters() {
  const pieces = [];
  for (let i = 0; i + 1 < data.counters.length; i += 2) pieces.push([data.counters[i], data.counters[i + 1]]);
  if (pieces.length === 0) return;
  const moved = {};
  for (const [before, after] of pieces)
    for (const [name, value] of Object.entries(after.values)) moved[name] = (moved[name] ?? 0) + value - (before.values[name] ?? 0);
  const names = Object.keys(moved).filter(name => moved[name] > 0).sort((a, b) => moved[b] - moved[a]);
  const rate = (name, [before, after]) => (after.values[name] - (before.values[name] ?? 0)) / (after.at_s - before.at_s);
  chart({
    title: "Counters over time", note: "Of this process's engine, per second of each piece; the 10 that moved most.",
    xs: pieces.map(([, after]) => after.at_s), x_label: "s since the start", y_label: "per second", x_text: x => String(+x.toPrecision(4)),
    is_log_y: true, lines: names.slice(0, 10).map(name => ({label: name, ys: pieces.map(piece => rate(name, piece))})),
  });
}

function fill_tables() {
  const columns = [["op"], ["path"], ["size"], ["p50_us", "p50 us"], ["p99_us", "p99 us"], ["p999_us", "p99.9 us"], ["gb_per_s", "GB/s"],
                   ["messages_per_s", "messages/s"], ["canary_ns", "canary ns"], ["ours_to_floor", "ours/it"]];
  const rows = document.getElementById("rows"), heading = element(rows, "tr");
  for (const [key, name] of columns) element(heading, "th", name ?? key);
  for (const row of data.rows) {
    const line = element(rows, "tr");
    for (const [key] of columns) element(line, "td", key === "size" ? size_text(row.size) : typeof row[key] === "number" ? number_text(row[key]) : row[key] ?? "");
  }
  const facts = document.getElementById("environment");
  for (const [name, text] of data.environment) {
    const line = element(facts, "tr");
    element(line, "td", name);
    element(line, "td", text);
  }
}

function has_line(plot) {
  const canvas = plot.ctx.canvas, pixels = plot.ctx.getImageData(0, 0, canvas.width, canvas.height).data;
  for (let i = 0; i < pixels.length; i += 4)
    if (pixels[i + 3] > 0 && Math.max(pixels[i], pixels[i + 1], pixels[i + 2]) - Math.min(pixels[i], pixels[i + 1], pixels[i + 2]) > 60) return true;
  return false;
}

document.title = data.title;
document.querySelector("h1").textContent = data.title;
fill_tables();
draw_times();
by_size("p50_us", "Median time by size", "us");
by_size("gb_per_s", "Bandwidth by size", "GB/s");
by_size("messages_per_s", "Messages by size", "messages/s");
draw_counters();
setTimeout(() => { document.body.dataset.drawn = charts.filter(has_line).length + " of " + charts.length; }, 0);
