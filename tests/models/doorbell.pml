/* The doorbell of a consumer with several producers, as between engines of one host (docs/shm.md, src/shm/doorbell.hpp
 * and watch.hpp), under a weak memory model (weak_memory.pml).
 *
 * A producer writes a record and checks whether the consumer watches its ring. If not, it sets its bit in the doorbell
 * and in the summary. If the consumer sleeps, the producer takes the flag that says so, and sends to its socket. A
 * full socket has already rung. The consumer polls the rings that it watches and the summary. Before it sleeps, it
 * announces that, stops watching, executes a barrier and polls once more. After it wakes, it withdraws the
 * announcement and later drains the sockets. A late send or drain causes a stale wake-up.
 *
 *   -         P writes two records, Q one; the consumer's barrier replaces the producers' fences
 *   SMALL     the same with one record each
 *   POLLER    one record each; while one thread of the consumer sleeps, another may poll, take records and leave
 *   FENCED    producers execute fences; Q writes nothing
 *   MORTAL    Q may die at any step, and the kernel tells the consumer; a successor gets its slot and its bit
 *   ALONE     with MORTAL: P writes nothing
 *
 * Property: the consumer never sleeps while a record is not taken. Sleeping is a blocking statement, so a lost wake-up
 * is a deadlock. Each name in tests/doorbell_model_test.cpp plants a fault that spin must find.
 *
 * Not modelled: the contents of records (the ring has its own memory orders), and malicious producers.
 */

#define C 0             /* the consumer */
#define P 1             /* producers */
#define Q 2             /* this one may die */
#define THREADS 3
#ifdef ALONE
#define RECORDS(p) ((p) == Q)
#else
#if defined(MORTAL) || defined(POLLER) || defined(SMALL)
#define RECORDS(p) 1
#elif defined(FENCED)
#define RECORDS(p) ((p) == P -> 2 : 0)
#else
#define RECORDS(p) ((p) == P -> 2 : 1)
#endif
#endif
#ifdef MORTAL
#define STORES 2
#else
#define STORES 3
#endif

/* words */
#define RING(p) ((p) - 1)
#define WATCHED(p) ((p) + 1)
#define BITS 4
#define SUMMARY 5
#define ASLEEP 6
#define WORDS 7
#define ENDLESS
#define IS_LOADED_BY(t, w) \
  ((w) == RING(P) || (w) == RING(Q) || (w) == SUMMARY ? (t) == C \
   : (w) == WATCHED(P) || (w) == WATCHED(Q) ? (t) + 1 == (w) && !now.is_gone[t] \
   : (w) == ASLEEP && (t) != C && !now.is_gone[t])
bit is_dead[3], is_gone[3];
#include "weak_memory.pml"

#define MASK(p) (p)

bit has_sent[3];  /* pending in each socket, which has room for one */
byte written[3], taken[3];

/* A producer ------------------------------------------------------------------------------------------------------- */

inline write_record(me) {
  atomic { written[me]++; STORE(me, RING(me), written[me], RELEASE) }
}

inline send(me) { has_sent[me] = 1 }

inline ring(me) {
#ifdef WEAK_BITS
  STORE(me, BITS, VALUE(BITS) | MASK(me), RELAXED);
#else
  EXCHANGE(me, BITS, VALUE(BITS) | MASK(me), value);
#endif
#ifdef SUMMARY_ONCE
  if
  :: value & MASK(me)
  :: else -> EXCHANGE(me, SUMMARY, 1, value)
  fi;
  FENCE(me);
#else
#ifdef WEAK_RING
  EXCHANGE(me, SUMMARY, 1, value);
#else
  atomic { EXCHANGE(me, SUMMARY, 1, value); FENCE(me) };
#endif
#endif
#ifdef FLAG_CLEARED_TOO_LATE
  LOAD(me, ASLEEP, RELAXED, value);
  if
  :: value -> send(me); STORE(me, ASLEEP, 0, RELAXED)
  :: else
  fi
#else
  atomic {
    LOAD(me, ASLEEP, RELAXED, value);
    if
    :: value -> EXCHANGE(me, ASLEEP, 0, value)
    :: else
    fi
  };
  if
  :: value -> send(me)
  :: else
  fi
#endif
}

proctype Producer(byte me, last) {
  byte value;
  {
    do
    :: written[me] == last -> break
    :: written[me] < last ->
#ifdef LOOK_BEFORE_WRITING
      LOAD(me, WATCHED(me), RELAXED, value);
      write_record(me);
#else
      write_record(me);
#if defined(FENCED) && !defined(NO_FENCE)
      FENCE(me);
#endif
      LOAD(me, WATCHED(me), RELAXED, value);
#endif
      if
      :: value == 0 -> ring(me)
      :: else
      fi;
      value = 0
    od;
    is_gone[me] = 1
  } unless { atomic { is_dead[me] -> is_gone[me] = 1 } }
}

#ifdef MORTAL
proctype Fate() {
  if
  :: is_dead[Q] = 1
  :: true
  fi
}
#endif

/* The consumer ----------------------------------------------------------------------------------------------------- */

inline visit(p) { LOAD(C, RING(p), ACQUIRE, taken[p]) }

/* Watches a ring whose producer has rung, if it pays. */
inline serve(p) {
  atomic {
    if
    :: !is_watched[p] -> is_watched[p] = 1; STORE(C, WATCHED(p), 1, RELAXED)
    :: true
    fi;
    visit(p)
  }
}

inline take_bell() {
#ifdef BITS_BEFORE_SUMMARY
  EXCHANGE(C, BITS, 0, bits);
  EXCHANGE(C, SUMMARY, 0, value);
#else
  EXCHANGE(C, SUMMARY, 0, value);
  EXCHANGE(C, BITS, 0, bits);
#endif
  if
  :: bits & MASK(P) -> serve(P)
  :: else
  fi;
  if
  :: bits & MASK(Q) -> serve(Q)
  :: else
  fi;
  atomic { bits = 0; value = 0 }
}

/* The kernel reports Q's death: the consumer takes Q's records, and a successor gets its slot. */
inline bury_and_replace() {
  atomic {
    LEARN(C, Q);
    visit(Q);
    assert(taken[Q] == written[Q]);
    is_dead[Q] = 0;
    is_gone[Q] = 0;
    has_sent[Q] = 0;
    is_watched[Q] = 0;
    STORE(C, WATCHED(Q), 0, RELAXED);
    LEARN(Q, C);
    is_reminded[Q] = 1;
    run Producer(Q, written[Q] + 1)
  }
}

inline unwatch(p) {
  if
  :: is_watched[p] -> STORE(C, WATCHED(p), 0, RELAXED)
  :: else
  fi
}

inline make_barrier() {
#if defined(FENCED) || defined(NO_BARRIER)
  FENCE(C)
#else
  atomic { FENCE(C); FENCE(P) };
  atomic { FENCE(Q); FENCE(C) }
#endif
}

/* Stops watching a ring. If its producer has written meanwhile, the ring is polled as if the producer had rung. */
inline remind_if_news(p) {
  if
  :: is_watched[p] ->
    LOAD(C, RING(p), ACQUIRE, value);
#ifndef NO_LOOK_AT_RINGS
    is_reminded[p] = (value != taken[p]);
#endif
    is_watched[p] = 0;
    value = 0
  :: else
  fi
}

/* The polling thread wakes the sleeping one. */
inline rouse() {
#ifdef NO_ROUSE
  skip
#else
  is_roused = 1
#endif
}

inline announce() { STORE(C, ASLEEP, 1, RELAXED) }

inline disarm() { atomic { STORE(C, ASLEEP, 0, RELAXED); is_roused = 0; is_armed = 0 } }

inline arm() {
  atomic {
#ifndef ANNOUNCE_LATE
    announce();
#endif
#ifndef UNWATCH_LATE
    unwatch(P);
    unwatch(Q)
#endif
  };
#ifdef DRAIN_LATE
  atomic { has_sent[P] = 0; has_sent[Q] = 0 };
#endif
  if
  :: is_watched[P] || is_watched[Q] -> make_barrier()
  :: else ->
#ifndef NO_FENCE_AFTER_ANNOUNCING
    FENCE(C)
#endif
  fi;
#ifdef UNWATCH_LATE
  atomic { unwatch(P); unwatch(Q) };
#endif
  atomic {
    remind_if_news(P);
    remind_if_news(Q);
#ifndef NO_SECOND_LOOK
    LOAD(C, SUMMARY, RELAXED, value);
#endif
    is_armed = !(value || is_reminded[P] || is_reminded[Q]);
    value = 0
  };
#ifdef ANNOUNCE_LATE
  announce();
#endif
  if
  :: true -> disarm()  /* there is work, or the consumer decides not to sleep */
  :: is_armed
  fi
}

proctype Consumer() {
  byte value, bits;
  bit is_watched[3], is_reminded[3], is_armed, is_roused;
#ifdef POLLER
  bit has_poller = 1;
#endif
  do
  :: !is_armed && is_watched[P] -> visit(P)
  :: !is_armed && is_watched[Q] -> visit(Q)
  :: !is_armed && is_reminded[P] -> is_reminded[P] = 0; serve(P)
  :: !is_armed && is_reminded[Q] -> is_reminded[Q] = 0; serve(Q)
  :: !is_armed && VALUE(SUMMARY) -> take_bell()
  :: !is_armed && is_dead[Q] && is_gone[Q] -> bury_and_replace()
#ifndef MORTAL
  :: !is_armed && is_watched[P] ->  /* the producer has become quiet */
    unwatch(P);
    make_barrier();
    atomic { remind_if_news(P) }
#endif
  :: !is_armed -> arm()
  :: !is_armed && has_sent[P] -> has_sent[P] = 0
  :: !is_armed && has_sent[Q] -> has_sent[Q] = 0
#ifdef POLLER
  :: is_armed && has_poller && VALUE(SUMMARY) -> rouse(); take_bell()
  :: is_armed && has_poller && has_sent[P] -> atomic { has_sent[P] = 0; rouse() }
  :: is_armed && has_poller && has_sent[Q] -> atomic { has_sent[Q] = 0; rouse() }
  :: has_poller -> has_poller = 0
#endif
  :: is_armed && (has_sent[P] || has_sent[Q] || is_roused) -> disarm()
#ifndef DEATH_UNHEARD
  :: is_armed && is_dead[Q] && is_gone[Q] -> disarm()
#endif
  :: is_armed && is_gone[P] && is_gone[Q] && !is_dead[Q] && taken[P] == written[P] && taken[Q] == written[Q] -> break
  od
}

init {
  start_memory();
  atomic {
    run Consumer();
    run Producer(P, RECORDS(P));
    run Producer(Q, RECORDS(Q));
#ifdef MORTAL
    run Fate()
#endif
  }
}
