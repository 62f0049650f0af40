// Hands on the map: drag, wheel, pinch, click and keys.

const STEP = 60;

export function listen(map) {
  const { canvas } = map;
  const pointers = new Map();
  let travelled = 0;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.x, event.clientY - box.y];
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, place(event));
    travelled = pointers.size > 1 ? Infinity : 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const now = place(event);
    if (pointers.size === 2) pinch(map, pointers, event.pointerId, now);
    else {
      travelled += Math.hypot(now[0] - before[0], now[1] - before[1]);
      if (travelled > 4) {
        map.pan(now[0] - before[0], now[1] - before[1]);
        canvas.classList.add("moving");
      }
    }
    pointers.set(event.pointerId, now);
  });
  const end = (event) => {
    if (pointers.delete(event.pointerId) && event.type === "pointerup" && travelled <= 4 && map.grid) {
      map.onPick(map.at(...place(event), event.pointerType === "touch" ? 18 : 9));
    }
    if (!pointers.size) canvas.classList.remove("moving");
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    map.zoom(Math.exp(-Math.max(-200, Math.min(200, event.deltaY)) / 250), ...place(event));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const moves = {
      ArrowLeft: () => map.pan(STEP, 0), ArrowRight: () => map.pan(-STEP, 0), ArrowUp: () => map.pan(0, STEP),
      ArrowDown: () => map.pan(0, -STEP), "+": () => map.zoom(1.3), "=": () => map.zoom(1.3), "-": () => map.zoom(1 / 1.3),
      0: () => map.fit(),
    };
    if (!moves[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    moves[event.key]();
  });
}

function pinch(map, pointers, moving, now) {
  const [id] = [...pointers.keys()].filter((one) => one !== moving);
  const other = pointers.get(id), before = pointers.get(moving);
  const gap = (point) => Math.hypot(point[0] - other[0], point[1] - other[1]) || 1;
  const middle = [(now[0] + other[0]) / 2, (now[1] + other[1]) / 2];
  map.pan((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
  map.zoom(gap(now) / gap(before), ...middle);
}
