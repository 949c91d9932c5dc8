/* The event queue under a weak memory model: producer, consumer and growth, as in src/queue (docs/event-queue.md).
 * BATCHES: both sides may also move two elements at a time, and the consumer may hand back all but the last.
 *
 * Memory. Every shared word has one writer. A writer's stores form its log, in program order; a store is release or
 * relaxed. A reader may take any store of a word that is not older than (1) the one that it took last from that word
 * and (2) the newest store to it at or below the reader's horizon. An acquire load of a release store raises the
 * horizon to that store. So relaxed stores arrive late and in any order, as C++ permits, and only release with acquire
 * makes earlier stores visible.
 *
 * Properties: the consumer takes the numbers 0, 1, 2, ... once each; the elements that it owns do not change until the
 * next get or add, or until it hands them back; the producer never meets a link that it would have to refuse. Each name
 * WEAK_* makes one memory order relaxed. PAST_GRANT lets a batch go beyond the grant, PAST_LAST hands back the last
 * element, too. With any of them spin must find a failure (tests/event_queue_model_test.cpp).
 */

/* numbers put in all: past the end of the ring and through the added elements */
#ifdef SMALL
#define NUMBERS 6
#else
#define NUMBERS 7
#endif
#define SIZE 4     /* initial elements, in one run */
#define ADDITIONS 2
#define SLOTS 6    /* SIZE + ADDITIONS; slot s + 1 directly follows slot s */
#define RUNS 5     /* the first one, and two for each addition */
#define NONE 7
#ifdef BATCHES
#define BATCH 2    /* elements that a call moves at most */
#else
#define BATCH 1
#endif

/* orders */
#ifdef WEAK_PUT
#define PUT_ORDER 0
#else
#define PUT_ORDER 1
#endif
#ifdef WEAK_PRODUCED_LOOK
#define PRODUCED_LOOK_ORDER 0
#else
#define PRODUCED_LOOK_ORDER 1
#endif
#ifdef WEAK_GRANT
#define GRANT_ORDER 0
#else
#define GRANT_ORDER 1
#endif
#ifdef WEAK_HAND_BACK
#define HAND_BACK_ORDER 0
#else
#define HAND_BACK_ORDER 1
#endif
#ifdef WEAK_GRANT_LOOK
#define GRANT_LOOK_ORDER 0
#else
#define GRANT_LOOK_ORDER 1
#endif
#ifdef WEAK_EPOCH
#define EPOCH_ORDER 0
#else
#define EPOCH_ORDER 1
#endif
#ifdef WEAK_EPOCH_LOOK
#define EPOCH_LOOK_ORDER 0
#else
#define EPOCH_LOOK_ORDER 1
#endif
#ifdef WEAK_SHAPE
#define SHAPE_ORDER 0
#else
#define SHAPE_ORDER 1
#endif
#ifdef WEAK_SHAPE_LOOK
#define SHAPE_LOOK_ORDER 0
#else
#define SHAPE_LOOK_ORDER 1
#endif

/* planted faults */
#ifdef PAST_GRANT
#define IS_GRANTED(n) (true)
#else
#define IS_GRANTED(n) ((n) != limit)
#endif
#ifdef PAST_LAST
#define LAST 0
#else
#define LAST 1
#endif

/* words that the consumer writes */
#define GRANT 0
#define EPOCH 1
#define SHAPE(r) (2 + (r))
#define REST(r) (7 + (r))
#define FIRST(r) (12 + (r))  /* first element + 1; 0: memory never blessed */
#define CONSUMER_WORDS 17
#define CONSUMER_LOG 60

/* words that the producer writes */
#define DATA(slot) (slot)
#define PRODUCED SLOTS
#define PRODUCER_WORDS (SLOTS + 1)
#define PRODUCER_LOG 24

#define PACK(count, next) ((count) * 8 + (next))
#define COUNT(shape) ((shape) / 8)
#define NEXT(shape) ((shape) % 8)

typedef Store { byte word; byte value; bit is_release };
Store consumer_log[CONSUMER_LOG];
Store producer_log[PRODUCER_LOG];
byte consumer_log_end, producer_log_end;

inline store_as_consumer(w, v, order) {
  d_step {
    assert(consumer_log_end < CONSUMER_LOG);
    consumer_log[consumer_log_end].word = w;
    consumer_log[consumer_log_end].value = v;
    consumer_log[consumer_log_end].is_release = order;
    consumer_log_end++
  }
}

inline store_as_producer(w, v, order) {
  d_step {
    assert(producer_log_end < PRODUCER_LOG);
    producer_log[producer_log_end].word = w;
    producer_log[producer_log_end].value = v;
    producer_log[producer_log_end].is_release = order;
    producer_log_end++
  }
}

/* From the newest store backwards: take it, or continue to an older one while that is permitted. */
#define LOAD(log, log_end, w, order, result) \
  atomic { \
    at = log_end - 1; \
    do \
    :: log[at].word != w -> at-- \
    :: log[at].word == w -> break \
    :: log[at].word == w && at > horizon && at > taken[w] -> at-- \
    od; \
    taken[w] = at; \
    if \
    :: order == 1 && log[at].is_release && at > horizon -> horizon = at \
    :: else \
    fi; \
    result = log[at].value; \
    at = 0 \
  }
#define LOAD_P(w, order, result) LOAD(consumer_log, consumer_log_end, w, order, result)
#define LOAD_C(w, order, result) LOAD(producer_log, producer_log_end, w, order, result)

/* the producer: src/queue/producer.cpp */
byte produced;

proctype Producer() {
  byte taken[CONSUMER_WORDS];
  byte horizon = CONSUMER_WORDS - 1;  /* of the log: the queue as it was made */
  byte at, value, shape, limit, epoch_seen, grant, epoch;
  byte place, first, count, next, slot, piece;
  byte i, batch;

  d_step {
    for (i : 0 .. CONSUMER_WORDS - 1) { taken[i] = 0 }
    i = 0; count = SIZE
  }
  do
  :: produced == NUMBERS -> break
  :: produced < NUMBERS && produced == limit ->
    LOAD_P(GRANT, GRANT_LOOK_ORDER, grant);
    if
    :: grant == produced
    :: else ->
      LOAD_P(EPOCH, EPOCH_LOOK_ORDER, epoch);
      if
      :: epoch == epoch_seen
      :: else ->
        piece = place;
        do
        :: LOAD_P(FIRST(piece), 0, first);
          assert(first != 0);
          first--;
          assert(first <= slot);
          LOAD_P(SHAPE(piece), SHAPE_LOOK_ORDER, shape);
          if
          :: slot < first + COUNT(shape) -> break
          :: else ->
            LOAD_P(REST(piece), 0, piece);
            assert(piece != NONE)
          fi
        od;
        place = piece; count = COUNT(shape); next = NEXT(shape);
        epoch_seen = epoch
      fi;
      limit = grant
    fi;
    d_step { grant = 0; epoch = 0; shape = 0; piece = 0 }
  :: produced < NUMBERS && produced != limit ->
    /* any part of what pnext(BATCH) returns: elements that are granted, up to the end of the run */
    batch = 1;
    do
    :: batch < BATCH && IS_GRANTED(produced + batch) && produced + batch < NUMBERS && slot + batch < first + count ->
      batch++
    :: break
    od;
    do
    :: i < batch -> store_as_producer(DATA(slot + i), produced + i + 1, 0); i++
    :: i == batch -> break
    od;
    if
    :: slot + batch < first + count -> slot = slot + batch
    :: else ->
      place = next;
      LOAD_P(FIRST(place), 0, first);
      assert(first != 0);
      first--;
      LOAD_P(SHAPE(place), SHAPE_LOOK_ORDER, shape);
      d_step { count = COUNT(shape); next = NEXT(shape); slot = first; shape = 0 }
    fi;
    d_step { produced = produced + batch; batch = 0; i = 0 }
    store_as_producer(PRODUCED, produced, PUT_ORDER)
  od
}

/* the consumer: src/queue/consumer.cpp, with its own set of links */
byte own_first[RUNS], own_count[RUNS], own_next[RUNS], own_rest[RUNS];

#define CHECK_OWNED \
  do \
  :: i < owned -> LOAD_C(DATA(slot - i), 0, value); assert(value == consumed - i); i++ \
  :: else -> break \
  od; \
  i = 0; value = 0

proctype Consumer() {
  byte taken[PRODUCER_WORDS];
  byte horizon = PRODUCER_WORDS - 1;
  byte at, value, seen, consumed, size = SIZE, additions, runs = 1, epoch;
  byte place, slot = SIZE - 1, after, left;
  byte owned;  /* elements taken last, up to the one at slot */
  byte i;

  do
  :: consumed == NUMBERS -> break
  :: consumed < NUMBERS ->
    CHECK_OWNED;
    if
    :: seen == consumed -> LOAD_C(PRODUCED, PRODUCED_LOOK_ORDER, seen)
    :: seen != consumed ->
      if
      :: slot < own_first[place] + own_count[place] - 1 -> slot++
      :: else -> place = own_next[place]; slot = own_first[place]
      fi;
      store_as_consumer(GRANT, consumed + size, GRANT_ORDER);
      d_step { consumed++; owned = 1 }
      do  /* any part of the batch: elements that were seen, up to the end of the run */
      :: owned < BATCH && seen != consumed && slot < own_first[place] + own_count[place] - 1 ->
        d_step { slot++; consumed++; owned++ }
      :: break
      od;
      CHECK_OWNED
    :: owned > 1 ->
      store_as_consumer(GRANT, consumed - LAST + size, HAND_BACK_ORDER);
      owned = 1
    :: additions < ADDITIONS ->
      left = own_first[place] + own_count[place] - 1 - slot;
      if
      :: left == 0 && slot + 1 == SIZE + additions ->  /* continues the consumer's run in memory */
        own_count[place]++;
        store_as_consumer(SHAPE(place), PACK(own_count[place], own_next[place]), SHAPE_ORDER)
      :: else ->
        after = own_next[place];
        if
        :: left != 0 ->  /* cut: the rest behind the consumer's element becomes a run */
          own_first[runs] = slot + 1;
          own_count[runs] = left;
          own_next[runs] = after;
          own_rest[runs] = own_rest[place];
          store_as_consumer(FIRST(runs), slot + 2, 0);
          store_as_consumer(SHAPE(runs), PACK(left, after), SHAPE_ORDER);
          store_as_consumer(REST(runs), own_rest[runs], 0);
          after = runs;
          own_rest[place] = runs;
          store_as_consumer(REST(place), runs, 0);
          runs++
        :: else
        fi;
        own_first[runs] = SIZE + additions;
        own_count[runs] = 1;
        own_next[runs] = after;
        own_rest[runs] = NONE;
        store_as_consumer(FIRST(runs), SIZE + additions + 1, 0);
        store_as_consumer(SHAPE(runs), PACK(1, after), SHAPE_ORDER);
        own_count[place] = own_count[place] - left;
        own_next[place] = runs;
        store_as_consumer(SHAPE(place), PACK(own_count[place], runs), SHAPE_ORDER);
        place = runs;
        runs++
      fi;
      slot = SIZE + additions;
      additions++;
      size++;
      epoch++;
      store_as_consumer(EPOCH, epoch, EPOCH_ORDER);
      store_as_consumer(GRANT, consumed + size - 1, GRANT_ORDER);
      owned = 0;
      after = 0; left = 0
    fi
  od
}

init {
  byte i;
  d_step {
    for (i : 0 .. PRODUCER_WORDS - 1) { producer_log[i].word = i }
    for (i : 0 .. CONSUMER_WORDS - 1) { consumer_log[i].word = i }
    for (i : 0 .. RUNS - 1) { consumer_log[REST(i)].value = NONE }
    consumer_log[GRANT].value = SIZE - 1;
    consumer_log[SHAPE(0)].value = PACK(SIZE, 0);
    consumer_log[FIRST(0)].value = 1;
    producer_log_end = PRODUCER_WORDS;
    consumer_log_end = CONSUMER_WORDS;
    own_count[0] = SIZE;
    own_rest[0] = NONE;
    i = 0
  }
  atomic { run Producer(); run Consumer() }
}
