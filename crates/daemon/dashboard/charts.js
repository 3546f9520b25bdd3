// Charts on canvas: lines, areas, marks, one time cursor over all of them.
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const cursor = { at: null, listeners: new Set() };
export function setCursor(at) {
  cursor.at = at;
  for (const listener of cursor.listeners) listener();
}

function fit(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const { width, height } = canvas.getBoundingClientRect();
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  return { g, width, height };
}

function niceStep(span, wanted) {
  const raw = span / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(raw || 1));
  return [1, 2, 2.5, 5, 10].map((m) => m * power).find((step) => step >= raw) || power * 10;
}
// A label has as many decimals as its step needs: 0, 2.5, 5 or 0, 0.25, 0.5.
const decimals = (step) => { const shown = String(+step.toPrecision(3)); return shown.includes(".") ? shown.split(".")[1].length : 0; };
const short = (value, step) => (step >= 1000 ? (value / 1000).toFixed(decimals(step / 1000)) + "k" : value.toFixed(decimals(step)));
// Milliseconds on an axis: 0, 250 ms, 500 ms or 0, 1 s, 2 s.
export const timeLabel = (value, step) => (value === 0 ? "0" : value >= 1000 ? `${+(value / 1000).toFixed(2)} s` : `${value.toFixed(decimals(step))} ms`);
const clock = (s) => (s >= 3600 ? `${Math.floor(s / 3600)}:${String(Math.floor(s / 60) % 60).padStart(2, "0")}:${String(Math.floor(s) % 60).padStart(2, "0")}` : `${Math.floor(s / 60)}:${String(Math.floor(s) % 60).padStart(2, "0")}`);

// spec: { series: [{ points: [[x, y]], color, kind: line|step|area|dash|dots }], marks: [[x, color]], format, min, max, x0, x1, level: [y, color, label] }
export function chart(spec, options = {}) {
  const canvas = document.createElement("canvas");
  canvas.className = `chart ${options.tall ? "tall" : ""}`;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", options.label || "chart");
  let last = spec;
  const area = { left: 46, right: 12, top: 10, bottom: 22 };
  let scale = null;
  function draw() {
    if (!canvas.isConnected) return;
    const { g, width, height } = fit(canvas);
    if (width < 20) return;
    const all = last.series.flatMap((one) => one.points);
    const xs = all.map((point) => point[0]);
    const x0 = last.x0 ?? (xs.length ? Math.min(...xs) : 0);
    let x1 = last.x1 ?? (xs.length ? Math.max(...xs) : 1);
    if (x1 <= x0) x1 = x0 + 1;
    const ys = all.map((point) => point[1]).filter((y) => y !== null && Number.isFinite(y));
    if (last.level) ys.push(last.level[0]);
    let y0 = last.min ?? 0;
    let y1 = Math.max(last.max ?? 0, ...(ys.length ? ys : [1])) * 1.06;
    if (ys.length && Math.min(...ys) < y0) y0 = Math.min(...ys) * 1.06;
    if (y1 <= y0) y1 = y0 + 1;
    const X = (x) => area.left + ((x - x0) / (x1 - x0)) * (width - area.left - area.right);
    const Y = (y) => height - area.bottom - ((y - y0) / (y1 - y0)) * (height - area.top - area.bottom);
    scale = { x0, x1, width };
    g.font = "11px system-ui, sans-serif";
    g.lineWidth = 1;
    const step = niceStep(y1 - y0, Math.max(2, height / 55));
    g.textAlign = "right"; g.textBaseline = "middle";
    for (let y = Math.ceil(y0 / step) * step; y <= y1; y += step) {
      g.strokeStyle = css("--line"); g.beginPath(); g.moveTo(area.left, Y(y)); g.lineTo(width - area.right, Y(y)); g.stroke();
      g.fillStyle = css("--faint"); g.fillText((last.format || short)(y, step), area.left - 7, Y(y));
    }
    g.textAlign = "center"; g.textBaseline = "top";
    const xStep = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800].find((s) => (x1 - x0) / s <= width / 80) || 3600;
    g.fillStyle = css("--faint");
    if (!last.plainX) for (let x = Math.ceil(x0 / xStep) * xStep; x <= x1; x += xStep) g.fillText(clock(x), X(x), height - area.bottom + 5);
    else { const s = niceStep(x1 - x0, width / 90); for (let x = Math.ceil(x0 / s) * s; x <= x1; x += s) g.fillText((last.formatX || short)(x, s), X(x), height - area.bottom + 5); }
    if (!ys.length) { g.fillStyle = css("--soft"); g.textAlign = "center"; g.textBaseline = "middle"; g.fillText(last.empty || "nothing to draw yet", (area.left + width - area.right) / 2, (area.top + height - area.bottom) / 2); }
    g.save(); g.beginPath(); g.rect(area.left, 0, width - area.left - area.right, height - area.bottom + 1); g.clip();
    for (const one of last.series) drawSeries(g, one, X, Y, Y(Math.max(0, y0)));
    for (const [x, color] of last.marks || []) { g.fillStyle = css(color); g.fillRect(X(x) - 1, height - area.bottom - 7, 2, 7); }
    if (last.level) {
      g.strokeStyle = css(last.level[1]); g.setLineDash([6, 4]); g.lineWidth = 1.3; g.beginPath(); g.moveTo(area.left, Y(last.level[0])); g.lineTo(width - area.right, Y(last.level[0])); g.stroke(); g.setLineDash([]);
      g.fillStyle = css(last.level[1]); g.textAlign = "left"; g.textBaseline = "bottom"; g.fillText(last.level[2] || "", area.left + 5, Y(last.level[0]) - 2);
    }
    if (cursor.at !== null && cursor.at >= x0 && cursor.at <= x1 && !last.plainX) drawCursor(g, X, Y, height);
    g.restore();
  }
  function drawCursor(g, X, Y, height) {
    g.strokeStyle = css("--cursor"); g.lineWidth = 1; g.beginPath(); g.moveTo(X(cursor.at), area.top); g.lineTo(X(cursor.at), height - area.bottom); g.stroke();
    for (const one of last.series) {
      if (one.kind === "dots") continue;
      const point = nearest(one.points, cursor.at);
      if (point && point[1] !== null) { g.fillStyle = css(one.color); g.beginPath(); g.arc(X(point[0]), Y(point[1]), 3, 0, 7); g.fill(); }
    }
  }
  const atEvent = (event) => {
    if (!scale || last.plainX) return;
    const box = canvas.getBoundingClientRect();
    const share = (event.clientX - box.left - area.left) / (box.width - area.left - area.right);
    setCursor(scale.x0 + Math.min(1, Math.max(0, share)) * (scale.x1 - scale.x0));
  };
  canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); atEvent(event); });
  canvas.addEventListener("pointermove", (event) => { if (event.buttons) atEvent(event); });
  const observer = new ResizeObserver(() => draw());
  observer.observe(canvas);
  const redraw = () => (canvas.isConnected ? draw() : cursor.listeners.delete(redraw));
  cursor.listeners.add(redraw);
  return { canvas, update(next) { last = next; draw(); } };
}

export function nearest(points, x) {
  let best = null;
  for (const point of points) if (!best || Math.abs(point[0] - x) < Math.abs(best[0] - x)) best = point;
  return best;
}

function drawSeries(g, one, X, Y, base) {
  const points = one.points.filter((point) => point[1] !== null && Number.isFinite(point[1]));
  if (!points.length) return;
  g.strokeStyle = css(one.color); g.fillStyle = css(one.color); g.lineWidth = one.width || 1.7; g.lineJoin = "round";
  if (one.kind === "dots") { g.globalAlpha = 0.65; for (const [x, y] of points) { g.beginPath(); g.arc(X(x), Y(y), one.size || 2.6, 0, 7); g.fill(); } g.globalAlpha = 1; return; }
  if (one.kind === "area") {
    g.globalAlpha = one.opacity || 0.9; g.beginPath();
    points.forEach(([x, y], place) => (place ? g.lineTo(X(x), Y(y)) : g.moveTo(X(x), Y(y))));
    if (one.under) [...one.under].reverse().forEach(([x, y]) => g.lineTo(X(x), Y(y)));
    else { g.lineTo(X(points.at(-1)[0]), base); g.lineTo(X(points[0][0]), base); }
    g.closePath(); g.fill(); g.globalAlpha = 1; return;
  }
  if (one.kind === "dash") g.setLineDash([5, 4]);
  g.beginPath();
  let [before, level] = [null, null];
  for (const [x, y] of points) {
    const gap = before !== null && one.gap && x - before > one.gap;
    if (before === null || gap) g.moveTo(X(x), Y(y)); else { if (one.kind === "step") g.lineTo(X(x), level); g.lineTo(X(x), Y(y)); }
    [before, level] = [x, Y(y)];
  }
  g.stroke(); g.setLineDash([]);
  if (one.gap) for (const [x, y] of points) { g.beginPath(); g.arc(X(x), Y(y), 1.6, 0, 7); g.fill(); }
}

// Bars of a fixed size, drawn without asking the page for its layout: a list of 500 functions has 500 of them.
const SPARK = { width: 110, height: 24 };
export function spark(values, color = "--used") {
  const most = Math.max(1, ...values);
  const step = SPARK.width / values.length;
  const bar = (value, place) => `M${((place + 0.5) * step).toFixed(1)} ${SPARK.height}v${-(value ? Math.max(1.5, (value / most) * (SPARK.height - 2)) : 0.6).toFixed(1)}`;
  const make = (tag, attributes) => { const element = document.createElementNS("http://www.w3.org/2000/svg", tag); for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value); return element; };
  const svg = make("svg", { class: "spark", viewBox: `0 0 ${SPARK.width} ${SPARK.height}`, "aria-hidden": "true" });
  svg.append(make("path", { d: values.map(bar).join(""), "stroke-width": Math.max(1, step - 1), style: `stroke:var(${color})` }));
  return svg;
}
