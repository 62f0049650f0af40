/** Wait so long; rejects with the reason of `signal` as soon as that is aborted. */
export function paused(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resume, reject) => {
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", aborted);
      resume();
    }, ms);
    const aborted = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    if (signal?.aborted) aborted();
    else signal?.addEventListener("abort", aborted, { once: true });
  });
}
