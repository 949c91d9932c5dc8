/* One-sided access inside a host: an owner publishes memory, initiators copy to and from it, and the owner withdraws
 * it (docs/one-sided.md). Under a weak memory model (weak_memory.pml).
 *
 * The model has one record of the table. The owner publishes place 0, withdraws it, and publishes place 1. Two
 * initiators know the keys of all publications. Each enters, checks, copies and leaves. One of them may die at any
 * step, and the kernel then tells the owner.
 *
 *   -         a region: any number of uses. Both publications have the same key, the worst case for a stale key
 *   FENCED    the same without the kernel's barrier: initiators and owner execute fences
 *   ONE_USE   an exposure in the arena: each publication has its own key and permits one use
 *   BY_CALLS  with ONE_USE: an exposure outside the arena, found in the owner's private record; a call may fail
 *   SMALL     with both: one publication instead of two
 *   LIAR      with both: a process writes arbitrary values into the table
 *
 * Properties: no copy touches memory that the owner has back, and each copy sees what the owner wrote before
 * publication. A withdrawal ends when all readers have left or died: each wait is a blocking statement, so an endless
 * wait would be a deadlock. An exposure is used at most once, and ends with the right status: done, canceled, or
 * refused if its initiator has died. With LIAR only memory safety holds. Each name in tests/one_sided_model_test.cpp
 * plants a fault that spin must find.
 */

#ifdef ONE_USE
#define USES(i) 1
#else
#define USES(i) ((i) == A -> 2 : 1)
#endif
#if defined(LIAR) || defined(SMALL)
#define PUBLICATIONS 1
#else
#define PUBLICATIONS 2
#endif

#define O 0                /* the owner */
#define A 1                /* initiators */
#define B 2
#define THREADS 3

/* words */
#define KEY 0              /* in the table; 0: none published. ONE_USE: or the name of the initiator that took it */
#define PLACE 1
#define AT(i) (1 + (i))    /* in the pair's page: the use of initiator i (a hazard pointer); 0: none */
#define MEMORY(p) (4 + (p))
#ifndef ONE_USE
#define WORDS 6
#else
#define TOLD(i) (5 + (i))  /* in the ring: the key of the last use that initiator i has reported */
#ifndef BY_CALLS
#define WORDS 8
#else
#define OWN_KEY 8          /* in the owner's private record, which then also holds PLACE */
#define WORDS 9
#define IS_LOADED_BY(t, w) ((w) != KEY)
#endif
#endif
#ifndef BY_CALLS
#define OWN_KEY KEY
#endif
#define STORES 8
#include "weak_memory.pml"

/* Memory orders; a planted fault weakens one. */
#ifdef WEAK_PUBLICATION
#define PUBLICATION RELAXED
#else
#define PUBLICATION RELEASE
#endif
#ifdef WEAK_LOOK
#define LOOK RELAXED
#else
#define LOOK ACQUIRE
#endif
#ifdef WEAK_ENTRY
#define ENTRY RELAXED
#else
#define ENTRY RELEASE
#endif
#ifdef WEAK_EXIT
#define EXIT RELAXED
#else
#define EXIT RELEASE
#endif
#ifdef WEAK_WATCH
#define WATCH RELAXED
#else
#define WATCH ACQUIRE
#endif
#ifdef WEAK_TELLING
#define TELLING RELAXED
#else
#define TELLING RELEASE
#endif

#ifdef ONE_USE
#define KEY_OF(publication) (publication)
#else
#define KEY_OF(publication) 1
#endif
#define NAME(i) (8 + (i))  /* of an initiator; differs from all keys */

/* An initiator's use: the key, and a turn number that distinguishes successive uses. */
#define USE(turn, key) (4 * (turn) + (key))
#define IS_AT(use, key) ((use) != 0 && (use) % 4 == (key))

/* The memory's contents: the number of the publication, with a mark if an initiator has stored it. */
#define STORED(publication) (8 + (publication))
#define PUBLICATION_OF(value) ((value) % 8)

/* The true state, whatever the threads know of it. */
byte published[2];  /* by place: number of the publication; 0: the owner has it */
bit is_dead[3], is_known_dead[3];
byte waited_for, waited_use;  /* the owner waits until this initiator has left that use */
byte used[PUBLICATIONS + 1];
byte ends[PUBLICATIONS + 1];
#define OPEN 0
#define DONE 1
#define CANCELED 2
#define REFUSED 3

/* The initiator ---------------------------------------------------------------------------------------------------- */

inline enter(me) {
  atomic {
#ifndef NO_TURN
    turn++;
#endif
    /* an initiator that enters again does not delay an owner that waits for the earlier use */
    assert(waited_for != me || waited_use != USE(turn, key));
    STORE(me, AT(me), USE(turn, key), ENTRY);
#if (defined(FENCED) || defined(BY_CALLS)) && !defined(NO_FENCE)
    FENCE(me)
#endif
  }
}

inline look_up(me) {
  atomic { LOAD(me, OWN_KEY, LOOK, value); is_found = (value == key); value = 0 };
  if
  :: is_found -> LOAD(me, PLACE, RELAXED, place)
  :: else
  fi
}

inline claim(me) {
#ifdef CLAIM_WITHOUT_SWAP
  LOAD(me, KEY, ACQUIRE, value);
  if
  :: value == key -> STORE(me, KEY, NAME(me), RELEASE)
  :: else -> is_found = 0
  fi;
  value = 0
#else
#ifdef CLAIM_ANY_KEY
  atomic {
    if
    :: VALUE(KEY) != 0 && VALUE(KEY) < NAME(A) -> EXCHANGE(me, KEY, NAME(me), value); value = 0
    :: else -> is_found = 0
    fi
  }
#else
  SWAP_IF(me, KEY, key, NAME(me), is_found)
#endif
#endif
}

/* Reads and writes. */
inline copy(me) {
  atomic {
    LOAD(me, MEMORY(place), RELAXED, value);
    assert(published[place] != 0);
    assert(PUBLICATION_OF(value) == published[place]);
    STORE(me, MEMORY(place), STORED(published[place]), RELAXED);
    value = 0
  }
}

inline leave(me) { STORE(me, AT(me), 0, EXIT) }

#ifdef ONE_USE
/* Reports by a record in its ring: from here on the use is complete. */
inline tell(me) {
  atomic {
    STORE(me, TOLD(me), key, TELLING);
#ifndef LIAR
    assert(used[key] == 0 && ends[key] == OPEN);
    used[key]++
#endif
  }
}
#endif

proctype Initiator(byte me) {
  byte key, turn, uses, value, place;
  bit is_found;
  {
    do
    :: uses == USES(me) -> break
    :: uses < USES(me) ->
      atomic {
        uses++;
        if
        :: key = KEY_OF(1)
#ifdef ONE_USE
        :: PUBLICATIONS > 1 -> key = KEY_OF(2)
#endif
        fi
      };
#ifdef LOOK_BEFORE_ENTRY
      look_up(me);
      enter(me);
#else
      enter(me);
      look_up(me);
#endif
#ifdef LEAVE_BEFORE_COPY
      leave(me);
#endif
#ifdef ONE_USE
      if
      :: is_found -> claim(me)
      :: else
      fi;
#ifdef BY_CALLS
      if
      :: is_found && me == A ->  /* the call fails after copying all or a part: the initiator gives the use back */
        copy(me);
        SWAP_IF(me, KEY, NAME(me), key, is_found);
        is_found = 0
      :: true
      fi;
#endif
#endif
      if
      :: is_found ->
        copy(me);
#ifdef ONE_USE
#ifdef TELL_AFTER_LEAVING
        leave(me);
#endif
        tell(me)
#endif
      :: else
      fi;
      atomic {
#if !defined(LEAVE_BEFORE_COPY) && !defined(TELL_AFTER_LEAVING)
        leave(me);
#endif
        key = 0; place = 0; is_found = 0
      }
    od
  } unless { is_dead[me] }
}

/* Kills one initiator at any step, or never. */
proctype Fate() {
  if
  :: is_dead[A] = 1
  :: true
  fi
}

/* The owner -------------------------------------------------------------------------------------------------------- */

inline publish() {
  atomic {
    number++;
    published[place] = number;
    STORE(O, MEMORY(place), number, RELAXED);
    STORE(O, PLACE, place, RELAXED);
#ifdef BY_CALLS
    STORE(O, OWN_KEY, KEY_OF(number), PUBLICATION);
#endif
    STORE(O, KEY, KEY_OF(number), PUBLICATION)
  }
}

/* After a withdrawal: later entries find it withdrawn, and the owner sees all earlier entries. */
inline make_barrier() {
#ifdef NO_BARRIER
  skip
#else
#if defined(FENCED) || defined(BY_CALLS)
  FENCE(O)
#else
  atomic { FENCE(O); FENCE(A) };
  atomic { FENCE(B); FENCE(O) }
#endif
#endif
}

inline wait_for(i) {
  atomic {
    LOAD(O, AT(i), WATCH, seen);
    if
    :: IS_AT(seen, KEY_OF(number)) -> waited_for = i; waited_use = seen
    :: else -> seen = 0
    fi
  };
  if
  :: seen != 0 ->
    if
    :: LOAD_UNLIKE(O, AT(i), WATCH, seen, seen)
#ifndef WAIT_FOR_THE_DEAD
    :: is_dead[i] -> LEARN(O, i)
#endif
    fi;
    atomic { waited_for = 0; waited_use = 0; seen = 0 }
  :: else
  fi
}

/* The memory belongs to the application again, which writes to it. */
inline take_back() {
  atomic {
    published[place] = 0;
    assert(KNOWS_LAST(O, MEMORY(place)));
    STORE(O, MEMORY(place), 0, RELAXED)
  }
}

#ifndef ONE_USE

inline withdraw() {
  STORE(O, KEY, 0, RELAXED);
  make_barrier();
#ifndef REUSE_BEFORE_WAIT
  wait_for(A);
  wait_for(B);
#ifdef COUNT_STRANGERS
  false;  /* a peer without the arena claims for ever to be a reader */
#endif
#endif
  take_back()
}

proctype Owner() {
  byte number, place, seen;
  do
  :: number == PUBLICATIONS -> break
  :: number < PUBLICATIONS ->
    publish();
    withdraw();
    place = 1 - place
  od
}

#else

inline end_use(how) {
  atomic {
    assert(ends[number] == OPEN);
    ends[number] = how;
#ifndef LIAR
    assert(used[number] == (how == DONE -> 1 : 0));
#endif
    take_back()
  }
}

/* No initiator finds it any more; those let in by a forged table have left; initiator `done` has reported its copy. */
inline close(done) {
#ifdef BY_CALLS
  atomic { STORE(O, OWN_KEY, 0, RELAXED); STORE(O, KEY, 0, RELAXED); make_barrier() };
#ifndef CLOSE_WITHOUT_LOOK
  if
  :: done != A -> wait_for(A)
  :: else
  fi;
  if
  :: done != B -> wait_for(B)
  :: else
  fi
#endif
#else
  STORE(O, KEY, 0, RELAXED)
#endif
}

inline look_at_ring(i) {
  LOAD(O, TOLD(i), WATCH, told);
  if
  :: told == KEY_OF(number) -> close(i); end_use(DONE)
  :: else
  fi;
  told = 0
}

/* A reported use counts first. Otherwise the owner takes back what the initiator had taken. */
inline bury(i) {
  atomic { LEARN(O, i); is_known_dead[i] = 1 };
  look_at_ring(i);
  if
  :: ends[number] == OPEN ->
    LOAD(O, AT(i), ACQUIRE, seen);
    if
    :: IS_AT(seen, KEY_OF(number)) ->
      SWAP_IF(O, KEY, NAME(i), 0, told);
      if
      :: told -> close(i); end_use(REFUSED)
      :: else
      fi
    :: else
    fi;
    d_step { seen = 0; told = 0 }
  :: else
  fi
}

/* Withdrawal before a use: by the application, or because a message completes the operation. */
inline withdraw() {
#ifdef BY_CALLS
  atomic { STORE(O, OWN_KEY, 0, RELAXED); EXCHANGE(O, KEY, 0, taker); make_barrier() };
#else
  EXCHANGE(O, KEY, 0, taker);
#endif
#if !defined(BY_CALLS) || defined(BELIEVE_THE_TABLE)
  if
  :: taker == KEY_OF(number)  /* no initiator has taken it, and none can any more */
  :: else ->
#endif
#ifndef CANCEL_WHAT_IS_TAKEN
    wait_for(A);
    wait_for(B);
#endif
    if
    :: taker == NAME(A) -> LOAD(O, TOLD(A), WATCH, told)
    :: taker == NAME(B) -> LOAD(O, TOLD(B), WATCH, told)
    :: else
    fi;
#if !defined(BY_CALLS) || defined(BELIEVE_THE_TABLE)
  fi;
#endif
  if
  :: told == KEY_OF(number) -> end_use(DONE)
  :: told != KEY_OF(number) && taker == NAME(A) && is_dead[A] -> end_use(REFUSED)
  :: else -> end_use(CANCELED)
  fi;
  d_step { taker = 0; told = 0 }
}

proctype Owner() {
  byte number, place, seen, taker, told;
  do
  :: number == PUBLICATIONS -> break
  :: number < PUBLICATIONS ->
    publish();
    do
    :: ends[number] != OPEN -> break
    :: ends[number] == OPEN -> withdraw()
    :: ends[number] == OPEN && VALUE(TOLD(A)) == KEY_OF(number) -> look_at_ring(A)
    :: ends[number] == OPEN && VALUE(TOLD(B)) == KEY_OF(number) -> look_at_ring(B)
    :: ends[number] == OPEN && is_dead[A] && !is_known_dead[A] -> bury(A)
    od;
    place = 1 - place
  od
}

#ifdef LIAR
/* A process that knows all keys and names, and writes one of them into the table. */
proctype Liar() {
  if
  :: STORE_UNSEEN(KEY, KEY_OF(1))
  :: STORE_UNSEEN(KEY, NAME(A))
  :: STORE_UNSEEN(KEY, NAME(B))
  :: STORE_UNSEEN(KEY, 0)
  fi
}
#endif
#endif

init {
  start_memory();
  atomic {
    run Owner();
    run Initiator(A);
    run Initiator(B);
    run Fate();
#ifdef LIAR
    run Liar();
#endif
  }
}
