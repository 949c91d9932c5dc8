/* The task queue with a firewall element under a weak memory model: producer, consumer and a third party that
 * completes tasks. A second queue of the same kind returns tasks to their pool (src/queue/task_queue.hpp).
 *
 * Memory. Each word has a modification order. A thread has a view: the newest store that it knows of each word. A load
 * takes that store or any newer one. A release store carries its writer's view, and an acquire load of it joins that
 * view. A store by a thread that does not know the newest store to the word would be a race of two writers. The model
 * asserts that this does not happen. The same holds for a read of a payload (not atomic) whose newest store is
 * unknown.
 *
 * Properties: each message is taken once, with its payload; no word has two concurrent writers; the consumer frees
 * nothing that another thread still uses; queued tasks stay reachable. Each name WEAK_* makes one memory order
 * relaxed, and TAKE_LAST breaks the rule of the firewall. With any of them spin must find a failure
 * (tests/task_queue_model_test.cpp).
 */

#ifndef MESSAGES
#define MESSAGES 4
#endif
#define NODES 3
#define ANCHOR 0           /* of the queue; nodes are 1..NODES */
#define BACK (NODES + 1)   /* anchor of the return queue */
#define NEXTS (NODES + 2)
#define NEXT(n) (n)
#define STATE(n) (NEXTS + (n) - 1)
#define DATA(n) (NEXTS + NODES + (n) - 1)
#define WORDS (NEXTS + 2 * NODES)
#define STORES 14          /* most stores to one word */
#define NONE 15            /* null */

#define FILLING 0
#define READY 1
#define RUNNING 2
#define IN_PLACE 3
#define TOMBSTONE 4

#ifdef WEAK_LINK
#define LINK_ORDER 0
#else
#define LINK_ORDER 1
#endif
#ifdef WEAK_LINK_LOOK
#define LINK_LOOK_ORDER 0
#else
#define LINK_LOOK_ORDER 1
#endif
#ifdef WEAK_COMPLETE
#define COMPLETE_ORDER 0
#else
#define COMPLETE_ORDER 1
#endif
#ifdef WEAK_STATE_LOOK
#define STATE_LOOK_ORDER 0
#else
#define STATE_LOOK_ORDER 1
#endif
#ifdef WEAK_BACK
#define BACK_ORDER 0
#else
#define BACK_ORDER 1
#endif
#ifdef WEAK_BACK_LOOK
#define BACK_LOOK_ORDER 0
#else
#define BACK_LOOK_ORDER 1
#endif

#define P 0  /* producer */
#define C 1  /* consumer */
#define T 2  /* third party */

typedef View { byte newest[WORDS] }
typedef Word { byte count; byte value[STORES]; bit is_release[STORES]; View carried[STORES] }
Word words[WORDS];
View views[3];

/* the true state, whatever the threads know of it */
bit is_taken[MESSAGES + 1];
bit is_held[NODES + 1];  /* holds a message that was put and not taken */
byte put_count, taken_count;

inline join_view(to, from) {
  for (i : 0 .. WORDS - 1) {
    if
    :: from.newest[i] > to.newest[i] -> to.newest[i] = from.newest[i]
    :: else
    fi
  }
  i = 0
}

inline copy_view(to, from) {
  for (i : 0 .. WORDS - 1) { to.newest[i] = from.newest[i] }
  i = 0
}

inline store_raw(me, w, v, order) {
  assert(views[me].newest[w] == words[w].count - 1);
  assert(words[w].count < STORES);
  words[w].value[words[w].count] = v;
  words[w].is_release[words[w].count] = order;
  views[me].newest[w] = words[w].count;
  if
  :: order == 1 -> copy_view(words[w].carried[words[w].count], views[me])
  :: else
  fi;
  words[w].count++
}

#define STORE(me, w, v, order) d_step { store_raw(me, w, v, order) }

#define LOAD(me, w, order, result) \
  atomic { \
    at = views[me].newest[w]; \
    do \
    :: break \
    :: at + 1 < words[w].count -> at++ \
    od; \
    views[me].newest[w] = at; \
    if \
    :: order == 1 && words[w].is_release[at] -> join_view(views[me], words[w].carried[at]) \
    :: else \
    fi; \
    result = words[w].value[at]; \
    at = 0 \
  }

/* the hand-over of a task to the thread that completes it, ordered by a lock */
byte given = NONE;
byte given_message;
View given_view;

proctype Producer() {
  byte tail = ANCHOR, fresh = 1, node, after, at, i, message = 1;
  do
  :: message > MESSAGES -> break
  :: message <= MESSAGES ->
    if
    :: fresh <= NODES -> node = fresh; fresh++
    :: else ->
      /* back.take_unlinked() */
      LOAD(P, NEXT(BACK), BACK_LOOK_ORDER, node);
      if
      :: node != NONE ->
        LOAD(P, NEXT(node), BACK_LOOK_ORDER, after);
        if
        :: after != NONE -> STORE(P, NEXT(BACK), after, 0)
        :: else -> node = NONE
        fi
      :: else
      fi
    fi;
    if
    :: node == NONE
    :: else ->
      STORE(P, NEXT(node), NONE, 0);
      if
      :: STORE(P, DATA(node), message, 0);
        STORE(P, STATE(node), READY, 0);
        d_step { store_raw(P, NEXT(tail), node, LINK_ORDER); is_held[node] = 1; put_count++ }
      :: given == NONE ->
        STORE(P, STATE(node), FILLING, 0);
        d_step { store_raw(P, NEXT(tail), node, LINK_ORDER); is_held[node] = 1; put_count++ };
        d_step { given = node; given_message = message; copy_view(given_view, views[P]) }
      fi;
      tail = node;
      message++
    fi;
    d_step { node = 0; after = 0 }
  od
}

proctype Completer() {
  byte node, i;
end:
  do
  :: given != NONE ->
    d_step { node = given; join_view(views[T], given_view) };
    STORE(T, DATA(node), given_message, 0);
    STORE(T, STATE(node), READY, COMPLETE_ORDER);
    d_step { given = NONE; node = 0 }
  od
}

/* finish() of an unlinked task, then its return */
inline give_back(n) {
  STORE(C, NEXT(n), NONE, 0);
  STORE(C, NEXT(back_tail), n, BACK_ORDER);
  back_tail = n
}

inline execute(n) {
  d_step {
    assert(views[C].newest[DATA(n)] == words[DATA(n)].count - 1);
    message = words[DATA(n)].value[words[DATA(n)].count - 1];
    assert(is_held[n] && !is_taken[message]);
    is_taken[message] = 1;
    is_held[n] = 0;
    taken_count++;
    message = 0
  }
}

proctype Consumer() {
  byte before, node, state, after, back_tail = BACK, message, at, i;
  do
  :: taken_count == MESSAGES -> break
  :: taken_count < MESSAGES ->
    /* queued tasks are reachable */
    d_step {
      node = ANCHOR;
      message = 0;
      for (i : 0 .. NODES) {
        if
        :: node != NONE ->
          message = message + is_held[node];
          node = words[NEXT(node)].value[words[NEXT(node)].count - 1]
        :: else
        fi
      }
      assert(message == put_count - taken_count);
      message = 0; node = 0; i = 0
    };
    before = ANCHOR;
    LOAD(C, NEXT(ANCHOR), LINK_LOOK_ORDER, node);
    do
    :: node == NONE -> break
    :: node != NONE ->
      LOAD(C, STATE(node), STATE_LOOK_ORDER, state);
      LOAD(C, NEXT(node), LINK_LOOK_ORDER, after);
      if
#ifdef TAKE_LAST
      :: state == READY ->
#else
      :: state == READY && after != NONE ->
#endif
        STORE(C, NEXT(before), after, 0);
        STORE(C, STATE(node), RUNNING, 0);
        execute(node);
        give_back(node);
        break
#ifndef TAKE_LAST
      :: state == READY && after == NONE ->
        STORE(C, STATE(node), IN_PLACE, 0);
        execute(node);
        STORE(C, STATE(node), TOMBSTONE, 0);
        break
#endif
      :: state == TOMBSTONE && after != NONE ->
        STORE(C, NEXT(before), after, 0);
        give_back(node);
        node = after
      :: else -> before = node; node = after
      fi
    od;
    skip;
    d_step { before = 0; node = 0; state = 0; after = 0 }
  od
}

init {
  byte i;
  d_step {
    for (i : 0 .. WORDS - 1) { words[i].count = 1 }
    for (i : 0 .. NEXTS - 1) { words[NEXT(i)].value[0] = NONE }
    i = 0
  }
  atomic { run Producer(); run Consumer(); run Completer() }
}
