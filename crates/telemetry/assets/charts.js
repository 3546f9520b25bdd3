// Small SVG charts: lines and points with error bars on linear or logarithmic axes. Hover or arrow keys
// read values, dragging zooms, the legend hides. Colours are CSS variables: light and dark need no redraw.
"use strict";
function tick(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e9) return +(value / 1e9).toPrecision(4) + "G";
  if (size >= 1e6) return +(value / 1e6).toPrecision(4) + "M";
  if (size >= 1e4) return +(value / 1e3).toPrecision(4) + "k";
  if (size < 1e-3) return value.toExponential(0);
  return String(+value.toPrecision(4));
}
function ticks(low, high, log, count) {
  const out = [];
  if (log && high / low > 1.6) {
    const decades = Math.log10(high / low), every = Math.max(1, Math.ceil(decades / count));
    const steps = decades < 1.2 ? [1, 1.5, 2, 3, 5, 7] : decades < 3 && count > 3 ? [1, 2, 5] : [1];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) {
      if (e % every) continue;
      for (const step of steps) {
        const v = step * 10 ** e;
        if (v >= low * 0.9999 && v <= high * 1.0001) out.push(v);
      }
    }
    return out;
  }
  const raw = (high - low) / Math.max(count, 1), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map(s => s * power).find(s => s >= raw * 0.9999);
  for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-6; v += step) out.push(+v.toPrecision(12));
  return out;
}
function range(values, log, fromZero) {
  let low = Infinity, high = -Infinity;
  for (const v of values) {
    if (!isNumber(v) || (log && v <= 0)) continue;
    low = Math.min(low, v);
    high = Math.max(high, v);
  }
  if (low > high) return log ? [1, 10] : [0, 1];
  if (log) {
    const pad = Math.max((high / low) ** 0.06, 1.08);
    return [low / pad, high * pad];
  }
  if (fromZero) low = Math.min(0, low);
  const pad = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  return [fromZero && low === 0 ? 0 : low - pad, high + pad];
}
// From the first to the last, for time.
function tight(values) {
  const good = values.filter(isNumber), low = good.reduce((a, b) => Math.min(a, b), Infinity);
  const high = good.reduce((a, b) => Math.max(a, b), -Infinity);
  return high > low ? [low, high] : range(values, false, false);
}
// An axis: value to pixel and back.
function axis([low, high], log, from, to) {
  const f = log ? Math.log : v => v, g = log ? Math.exp : v => v, a = f(low), span = f(high) - a;
  const at = v => from + (f(log ? Math.max(v, 1e-12) : v) - a) / span * (to - from);
  return { low, high, log, at, back: p => g(a + (p - from) / (to - from) * span) };
}
// Places labels so that they cover neither each other nor a point; far ones get a leader.
function placeLabels(svg, points, frame) {
  const taken = points.map(p => ({ x: p.x - 8, y: p.y - 8, w: 16, h: 16 }));
  const shared = (a, b) => Math.max(0, Math.min(a.x + a.w, b.x + b.w) - Math.max(a.x, b.x))
    * Math.max(0, Math.min(a.y + a.h, b.y + b.h) - Math.max(a.y, b.y));
  const inside = b => b.x >= frame.l && b.x + b.w <= frame.r && b.y >= frame.t && b.y + b.h <= frame.b;
  for (const p of points) {
    const w = p.name.length * 6.7 + 4, h = 15;
    let best = null;
    for (const far of [0, 14, 30, 46, 64, 84, 106, 130, 156, 184]) {
      for (const [dx, dy] of [[1, -1], [1, 1], [-1, -1], [-1, 1], [1, 0], [-1, 0], [0, -1], [0, 1]]) {
        const reach = 9 + far, x = p.x + dx * reach - (dx < 0 ? w : dx ? 0 : w / 2);
        const box = { x, y: p.y + dy * (4 + reach * 0.75) - h / 2, w, h };
        const cost = taken.reduce((sum, other) => sum + shared(box, other), 0) * 10 + far + (inside(box) ? 0 : 1e4);
        if (!best || cost < best.cost) best = { box, cost, far, dx };
      }
    }
    const { box, far, dx } = best;
    taken.push(box);
    if (far) {
      const end = { x: dx < 0 ? box.x + w : dx ? box.x : box.x + w / 2, y: box.y + h / 2 };
      node("line", { x1: p.x, y1: p.y, x2: end.x, y2: end.y, class: "leader" }, svg);
    }
    node("text", { x: box.x + 2, y: box.y + 11.5, class: "name" }, svg, p.name);
  }
}
function legendOf(host, spec, hidden, changed) {
  const legend = el("div", "legend", host), keys = [];
  const refresh = () => {
    for (const [key, s] of keys) key.setAttribute("aria-pressed", String(!hidden.has(s.name)));
    changed();
  };
  for (const s of spec.series) {
    const key = el("button", "key", legend);
    key.type = "button";
    key.title = "click: hide or show; with shift: this one alone";
    if (s.mode === "points") mark(key, s);
    else {
      const line = node("svg", { viewBox: "0 0 22 6", class: "dash", "aria-hidden": "true" }, key);
      const look = { stroke: s.color, "stroke-width": 2.5, "stroke-dasharray": s.dash || "none" };
      node("line", { x1: 0, x2: 22, y1: 3, y2: 3, ...look }, line);
    }
    el("span", "", key, s.name);
    key.setAttribute("aria-pressed", String(!hidden.has(s.name)));
    keys.push([key, s]);
    key.onclick = event => {
      if (event.shiftKey) {
        const others = spec.series.filter(o => o.name !== s.name).map(o => o.name);
        const alone = !hidden.has(s.name) && others.every(name => hidden.has(name));
        hidden.clear();
        if (!alone) others.forEach(name => hidden.add(name));
      } else if (!hidden.delete(s.name)) hidden.add(s.name);
      refresh();
    };
  }
}
function drawAxes(svg, spec, X, Y, frame, size) {
  const { l, r, t, b } = frame;
  for (const v of ticks(X.low, X.high, X.log, (r - l) / (spec.mini ? 70 : 90))) {
    const x = X.at(v);
    node("line", { x1: x, x2: x, y1: t, y2: b, class: "grid" }, svg);
    node("text", { x, y: b + 16, "text-anchor": "middle" }, svg, tick(v));
  }
  for (const v of ticks(Y.low, Y.high, Y.log, (b - t) / (spec.mini ? 34 : 50))) {
    const y = Y.at(v);
    node("line", { x1: l, x2: r, y1: y, y2: y, class: "grid" }, svg);
    node("text", { x: l - 7, y: y + 4, "text-anchor": "end" }, svg, tick(v));
  }
  node("line", { x1: l, x2: r, y1: b, y2: b, class: "axis" }, svg);
  if (spec.mini) return;
  node("text", { x: (l + r) / 2, y: size.h - 5, "text-anchor": "middle", class: "title" }, svg, spec.x.label);
  const turned = `translate(13 ${(t + b) / 2}) rotate(-90)`;
  node("text", { transform: turned, "text-anchor": "middle", class: "title" }, svg, spec.y.label);
}
// From the lowest to the highest value around a line.
function drawBand(area, s, points, X, Y) {
  const foot = v => Y.log ? Math.max(v, Y.low) : v, at = (p, v) => `${X.at(p.x).toFixed(1)} ${Y.at(foot(v)).toFixed(1)}`;
  if (points.length < 2) return;
  const edge = points.map(p => at(p, p.y1)).concat(points.map(p => at(p, p.y0)).reverse());
  node("path", { d: `M${edge.join("L")}Z`, fill: s.color, opacity: 0.16, stroke: "none" }, area);
}
function drawLine(area, s, points, X, Y) {
  if (!points.length) return;
  if (s.band) drawBand(area, s, points.filter(p => isNumber(p.y0)), X, Y);
  let d = "";
  points.forEach((p, k) => {
    const x = X.at(p.x).toFixed(1), y = Y.at(p.y).toFixed(1);
    d += !k ? `M${x} ${y}` : s.step ? `H${x}V${y}` : `L${x} ${y}`;
  });
  if (s.fill) {
    const foot = Y.at(Y.log ? Y.low : Math.max(Y.low, 0)).toFixed(1);
    const closed = `${d}V${foot}H${X.at(points[0].x).toFixed(1)}Z`;
    node("path", { d: closed, fill: s.color, opacity: 0.14, stroke: "none" }, area);
  }
  const look = { stroke: s.color, "stroke-width": s.width || 1.8, "stroke-dasharray": s.dash || "none" };
  node("path", { d, fill: "none", "stroke-linejoin": "round", class: "line", ...look }, area);
}
function drawPoint(area, s, p, X, Y) {
  const x = X.at(p.x), y = Y.at(p.y), thin = { stroke: s.color, "stroke-width": 1.4, opacity: 0.6 };
  if (isNumber(p.x0)) node("line", { x1: X.at(p.x0), x2: X.at(p.x1), y1: y, y2: y, ...thin }, area);
  if (isNumber(p.y0)) node("line", { x1: x, x2: x, y1: Y.at(p.y0), y2: Y.at(p.y1), ...thin }, area);
  const fill = s.hollow ? "var(--card)" : s.color;
  symbol(area, s.shape, x, y, 5.6, { fill, stroke: s.color, "stroke-width": 2 });
}
let clips = 0;
// spec: {label, height, mini, names, across, x, y, lines, series, describe}; an axis is {label, log, zero, tight, range}.
function chart(host, spec) {
  const hidden = host.hiddenSeries || (host.hiddenSeries = new Set());
  const view = { zoom: null, cursor: null };
  host.textContent = "";
  if (!spec.mini) legendOf(host, spec, hidden, () => draw());
  const box = el("div", "plot", host), tip = el("div", "tip", box), reset = el("button", "button reset", box);
  reset.type = "button";
  reset.textContent = "reset zoom";
  tip.setAttribute("role", "status");
  const svg = node("svg", { role: "img", tabindex: 0, "aria-label": spec.label || "" }, box);
  reset.onclick = () => { view.zoom = null; draw(); svg.focus(); };
  function draw() {
    svg.textContent = "";
    tip.classList.remove("shown");
    reset.hidden = !view.zoom;
    const w = Math.max(box.clientWidth, 200), h = spec.height || 340;
    const margins = spec.mini ? { l: 40, r: 6, t: 6, b: 20 } : { l: 58, r: 16, t: 10, b: 44 };
    const frame = { l: margins.l, r: w - margins.r, t: margins.t, b: h - margins.b };
    for (const [key, v] of [["viewBox", `0 0 ${w} ${h}`], ["height", h], ["width", w]]) svg.setAttribute(key, v);
    const shown = spec.series.filter(s => !hidden.has(s.name));
    const values = (a, b, c) => shown.flatMap(s => s.points.flatMap(p => [p[a], p[b], p[c]]));
    const xs = values("x", "x0", "x1").concat((spec.lines || []).map(v => v.x));
    const xRange = spec.x.tight ? tight(xs) : range(xs, spec.x.log, spec.x.zero);
    const yRange = spec.y.range || range(values("y", "y0", "y1"), spec.y.log, spec.y.zero);
    const X = axis(view.zoom ? view.zoom.x : xRange, spec.x.log, frame.l, frame.r);
    const Y = axis(view.zoom ? view.zoom.y : yRange, spec.y.log, frame.b, frame.t);
    drawAxes(svg, spec, X, Y, frame, { w, h });
    const id = "clip" + ++clips, { l, r, t, b } = frame;
    node("rect", { x: l, y: t, width: r - l, height: b - t }, node("clipPath", { id }, svg));
    const area = node("g", { "clip-path": `url(#${id})` }, svg);
    for (const v of spec.lines || []) {
      node("line", { x1: X.at(v.x), x2: X.at(v.x), y1: t, y2: b, class: "floor" }, area);
      node("text", { x: X.at(v.x) + 6, y: b - 8, class: "note" }, area, v.text);
    }
    const near = [], isDrawn = p => isNumber(p.x) && isNumber(p.y) && !(Y.log && p.y <= 0) && !(X.log && p.x <= 0);
    for (const s of shown) {
      const points = s.points.filter(isDrawn);
      if (s.mode === "points") points.forEach(p => drawPoint(area, s, p, X, Y));
      else drawLine(area, s, points, X, Y);
      if (s.joined) points.forEach(p => drawPoint(area, s, p, X, Y));
      for (const p of points) {
        const x = X.at(p.x), y = Y.at(p.y);
        if (x >= l - 1 && x <= r + 1 && y >= t - 1 && y <= b + 1) near.push({ x, y, p, s });
      }
    }
    if (spec.names) placeLabels(svg, near.map(n => ({ x: n.x, y: n.y, name: n.s.name })), frame);
    if (!near.length) node("text", { x: (l + r) / 2, y: (t + b) / 2, "text-anchor": "middle" }, svg, "nothing to show");
    listen({ svg, tip, spec, view, draw, X, Y, frame, area, near, shown, size: { w, h } });
  }
  draw();
  if (host.watch) host.watch.disconnect();
  let width = box.clientWidth;
  host.watch = new ResizeObserver(() => {
    if (box.clientWidth === width) return;
    width = box.clientWidth;
    draw();
  });
  host.watch.observe(box);
}
// Pointer and keys of one drawing.
function listen({ svg, tip, spec, view, draw, X, Y, frame, area, near, shown, size }) {
  const hair = node("line", { class: "hair", y1: frame.t, y2: frame.b, visibility: "hidden" }, area);
  const ring = node("circle", { r: 5, class: "ring", visibility: "hidden" }, area);
  const band = node("rect", { class: "band", visibility: "hidden" }, area);
  let start = null;
  const at = event => {
    const r = svg.getBoundingClientRect();
    return [(event.clientX - r.left) * size.w / r.width, (event.clientY - r.top) * size.h / r.height];
  };
  function hide() {
    tip.classList.remove("shown");
    for (const one of [hair, ring]) one.setAttribute("visibility", "hidden");
  }
  function read(found) {
    view.cursor = found;
    tip.textContent = "";
    if (spec.across) {
      el("b", "", tip, spec.describe(found.p));
      for (const s of shown) {
        const p = s.points.find(q => q.x === found.p.x);
        if (!p) continue;
        const line = el("div", "tip-line", tip), sign = el("i", "", line);
        sign.style.background = s.color;
        el("span", "", line, s.name);
        el("b", "", line, short(p.y));
      }
      hair.setAttribute("x1", found.x);
      hair.setAttribute("x2", found.x);
      hair.setAttribute("visibility", "visible");
    } else {
      el("b", "", tip, found.s.name);
      for (const line of spec.describe(found.p, found.s)) el("div", "", tip, line);
    }
    for (const [key, v] of [["cx", found.x], ["cy", found.y], ["stroke", found.s.color], ["visibility", "visible"]]) {
      ring.setAttribute(key, v);
    }
    tip.classList.add("shown");
    const width = tip.offsetWidth, fits = found.x + 14 + width <= size.w;
    tip.style.left = Math.max(0, fits ? found.x + 14 : found.x - 14 - width) + "px";
    tip.style.top = Math.max(0, Math.min(found.y - 20, size.h - tip.offsetHeight)) + "px";
  }
  function nearest(x, y) {
    let best = null, least = spec.across ? Infinity : 1600;
    for (const n of near) {
      const d = (n.x - x) ** 2 + (n.y - y) ** 2 * (spec.across ? 0.001 : 0.6);
      if (d < least) [best, least] = [n, d];
    }
    return best;
  }
  svg.onpointerdown = event => {
    if (event.button) return;
    start = at(event);
    svg.setPointerCapture(event.pointerId);
  };
  svg.onpointermove = event => {
    const [x, y] = at(event);
    if (!start) {
      const found = nearest(x, y);
      return found ? read(found) : hide();
    }
    // A flat drag means a stretch of the x axis.
    const flat = Math.abs(y - start[1]) < 8, top = flat ? frame.t : Math.min(y, start[1]);
    const height = flat ? frame.b - frame.t : Math.abs(y - start[1]);
    const look = { x: Math.min(x, start[0]), y: top, width: Math.abs(x - start[0]), height, visibility: "visible" };
    for (const key in look) band.setAttribute(key, look[key]);
    return hide();
  };
  svg.onpointerleave = hide;
  svg.onpointercancel = () => { start = null; band.setAttribute("visibility", "hidden"); };
  svg.onpointerup = event => {
    const from = start, [x, y] = at(event);
    start = null;
    band.setAttribute("visibility", "hidden");
    if (!from || Math.abs(x - from[0]) < 8) return;
    const flat = Math.abs(y - from[1]) < 8, clamp = (v, a, b) => Math.min(Math.max(v, a), b);
    const [x0, x1] = [x, from[0]].map(v => X.back(clamp(v, frame.l, frame.r))).sort((a, b) => a - b);
    const [y0, y1] = [y, from[1]].map(v => Y.back(clamp(v, frame.t, frame.b))).sort((a, b) => a - b);
    if (!(x1 > x0) || !(y1 > y0 || flat)) return;
    view.zoom = { x: [x0, x1], y: flat ? [Y.low, Y.high] : [y0, y1] };
    draw();
  };
  svg.ondblclick = () => { view.zoom = null; draw(); };
  svg.onkeydown = event => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key], turn = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (event.key === "Escape") {
      hide();
      if (view.zoom) { view.zoom = null; draw(); }
      return;
    }
    if ((!step && !turn) || !near.length) return;
    event.preventDefault();
    const now = near.find(n => view.cursor && n.p === view.cursor.p && n.s.name === view.cursor.s.name);
    if (!now) return read(near[0]);
    const names = [...new Set(near.map(n => n.s.name))];
    const mine = near.filter(n => n.s.name === now.s.name), alone = mine.length < 2;
    if (step && !alone) return read(mine[Math.min(Math.max(mine.indexOf(now) + step, 0), mine.length - 1)]);
    const next = names[(names.indexOf(now.s.name) + (step || turn) + names.length) % names.length];
    const theirs = near.filter(n => n.s.name === next);
    return read(theirs.reduce((a, b) => Math.abs(b.x - now.x) < Math.abs(a.x - now.x) ? b : a));
  };
  svg.onblur = hide;
}
