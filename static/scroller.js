/**
 * Where a conversation stands on the screen: it follows its end while a person is there, holds still while they read
 * elsewhere, and says when they come near the first or the last row that is there.
 */

/** Nearer to the end than this, in pixels, the conversation follows what arrives. */
const NEAR_PX = 80;
/** What is ahead of the screen is asked for at this distance from it, in heights of the screen. */
const AHEAD = 1.5;

/**
 * @param scroll the element that scrolls
 * @param content its rows, as children in order
 * @param onNear called with `start` or `end` while that is near; often
 * @param onFollow called with whether the end is followed, when that changes
 */
export function createScroller({ scroll, content, onNear, onFollow }) {
  let following = true;
  let lastTop = 0;
  /** The end that is reached is not the end of the conversation: there is nothing to follow. */
  let away = false;

  const distance = () => scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight;
  const toEnd = () => {
    scroll.scrollTop = scroll.scrollHeight;
    lastTop = scroll.scrollTop;
  };

  function setFollowing(next) {
    if (next === following) return;
    following = next;
    onFollow(following);
  }

  function look() {
    const ahead = scroll.clientHeight * AHEAD;
    if (scroll.scrollTop < ahead) onNear('start');
    if (away && distance() < ahead) onNear('end');
  }

  scroll.addEventListener(
    'scroll',
    () => {
      const top = scroll.scrollTop;
      // What arrives moves the end away; only a person who scrolls back leaves it.
      const isBack = top < lastTop - 1;
      lastTop = top;
      if (!away && distance() < NEAR_PX) setFollowing(true);
      else if (isBack) setFollowing(false);
      look();
    },
    { passive: true },
  );
  // Pictures that arrive and boxes that unfold must not push the end out of sight.
  const hold = () => following && toEnd();
  new ResizeObserver(hold).observe(content);
  new ResizeObserver(hold).observe(scroll);

  /** The first row that can be seen. */
  function firstInSight() {
    const { top } = scroll.getBoundingClientRect();
    const rows = content.children;
    let low = 0;
    let high = rows.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows[middle].getBoundingClientRect().bottom > top) high = middle;
      else low = middle + 1;
    }
    return rows[low] ?? null;
  }

  return {
    isFollowing: () => following,
    /** Goes to the end and stays there. */
    follow() {
      setFollowing(true);
      toEnd();
    },
    /** Stays where it is, whatever arrives. */
    hold: () => setFollowing(false),
    /** Whether there are rows behind the last one. */
    setAway(next) {
      away = next;
      if (away) setFollowing(false);
    },
    /** Changes the rows while what is read stays in its place. */
    keep(change) {
      const row = following ? null : firstInSight();
      const before = row?.getBoundingClientRect().top;
      change();
      if (following) toEnd();
      else if (row?.isConnected) {
        // A browser that anchors by itself has moved already; then this is nothing.
        const moved = row.getBoundingClientRect().top - before;
        if (Math.abs(moved) >= 1) scroll.scrollTop += moved;
        lastTop = scroll.scrollTop;
      }
    },
    look,
  };
}
