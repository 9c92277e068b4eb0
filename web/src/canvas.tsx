// SPDX-License-Identifier: MIT
// A canvas that is as large as its place and as sharp as the screen.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { palette } from "./colours";
import type { Surface } from "./flame_draw";
import { SvgContext } from "./svg_context";

export interface CanvasEvents {
  onPointerMove?: (e: PointerEvent, x: number, y: number) => void;
  onPointerDown?: (e: PointerEvent, x: number, y: number) => void;
  onPointerUp?: (e: PointerEvent, x: number, y: number) => void;
  onPointerLeave?: () => void;
  onDoubleClick?: (e: MouseEvent, x: number, y: number) => void;
  onWheel?: (e: WheelEvent, x: number, y: number) => void;
  onKeyDown?: (e: KeyboardEvent) => void;
}

// How a canvas is drawn once more, for a file.
interface Drawn {
  svg(title: string): string;
}
const drawn = new WeakMap<HTMLCanvasElement, Drawn>();
export function canvasOf(element: HTMLCanvasElement): Drawn | undefined {
  return drawn.get(element);
}

interface Props extends CanvasEvents {
  draw: (surface: Surface) => void;
  label: string;
  class?: string;
  onSize?: (width: number, height: number) => void;
}

export function Canvas(props: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [, setTheme] = useState(0);
  const wheel = useRef(props.onWheel);
  wheel.current = props.onWheel;

  useLayoutEffect(() => {
    const element = canvas.current!;
    const observer = new ResizeObserver(() => {
      const width = element.clientWidth;
      const height = element.clientHeight;
      setSize({ width, height });
      props.onSize?.(width, height);
    });
    const onWheel = (e: WheelEvent): void => wheel.current?.(e, ...placeOf(e, element));
    observer.observe(element);
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => {
      observer.disconnect();
      element.removeEventListener("wheel", onWheel);
    };
  }, []);
  useEffect(() => {
    const again = (): void => setTheme((n) => n + 1);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", again);
    addEventListener("weir-theme", again);
    return () => {
      dark.removeEventListener("change", again);
      removeEventListener("weir-theme", again);
    };
  }, []);
  useLayoutEffect(() => {
    const element = canvas.current!;
    const c = element.getContext("2d");
    if (!c || !size.width || !size.height) return;
    const ratio = devicePixelRatio || 1;
    const [w, h] = [Math.round(size.width * ratio), Math.round(size.height * ratio)];
    if (element.width !== w || element.height !== h) [element.width, element.height] = [w, h];
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    const colours = palette();
    props.draw({ c, ...size, colours });
    drawn.set(element, {
      svg(title) {
        const s = new SvgContext(c, colours.isDark);
        props.draw({ c: s as unknown as CanvasRenderingContext2D, ...size, colours });
        return s.document(size.width, size.height, title);
      },
    });
  });
  const at = <E extends MouseEvent>(handle: ((e: E, x: number, y: number) => void) | undefined) =>
    handle && ((e: E) => handle(e, ...placeOf(e, canvas.current!)));
  return (
    <canvas
      ref={canvas}
      class={props.class ?? "canvas"}
      role="img"
      aria-label={props.label}
      tabIndex={0}
      onPointerMove={at(props.onPointerMove)}
      onPointerDown={at(props.onPointerDown)}
      onPointerUp={at(props.onPointerUp)}
      onPointerLeave={props.onPointerLeave}
      onDblClick={at(props.onDoubleClick)}
      onKeyDown={props.onKeyDown}
    />
  );
}

function placeOf(e: MouseEvent, element: HTMLElement): [number, number] {
  const box = element.getBoundingClientRect();
  return [e.clientX - box.left, e.clientY - box.top];
}
