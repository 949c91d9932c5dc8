/* A weak memory model for models that include it. They define THREADS, WORDS and STORES (the most stores that matter
 * at once).
 *
 * Each word has a modification order. A thread has a view: the newest store that it knows of each word. A load takes
 * that store or any newer one. A release store carries its writer's view, and an acquire load of it joins that view.
 * An exchange reads the last store, appends the next one, and carries on the view of the store that it read. Two
 * sequentially consistent fences are ordered: the thread of the later one joins the view of the earlier one. So stores
 * arrive late and in any order, as C++ permits. A store in a processor's store buffer is a store that other threads do
 * not know yet.
 *
 * Stores that no thread can read any more are dropped, so that equal futures are equal states. With ENDLESS, a word
 * that has STORES stores drops its oldest one, and a thread that is so far behind gets the next. A model can then run
 * without end.
 */

#ifndef IS_LOADED_BY
#define IS_LOADED_BY(t, w) 1  /* whether thread t may load word w (not: exchange it) from now on */
#endif

#define RELAXED 0
#define RELEASE 1
#define ACQUIRE 1

typedef View { byte newest[WORDS] }
typedef Word { byte count; byte value[STORES]; bit is_release[STORES]; View carried[STORES] }
Word words[WORDS];
View views[THREADS];
View fences;  /* the view of the thread of the last fence */

hidden byte me_, word_, value_, order_;  /* arguments of the functions below */
byte at_;

#define LAST(w) (words[w].count - 1)
#define VALUE(w) (words[w].value[LAST(w)])
#define KNOWS_LAST(me, w) (views[me].newest[w] == LAST(w))

c_code {
  static void join_view(struct View* to, const struct View* from) {
    for (int w = 0; w < WORDS; ++w)
      if (from->newest[w] > to->newest[w]) to->newest[w] = from->newest[w];
  }

  static void lower(uchar* newest, int by) { *newest = *newest > by ? *newest - by : 0; }

  static void forget_some(int word, int least) {
    struct Word* it = &now.words[word];
    for (int t = 0; t < THREADS; ++t) lower(&now.views[t].newest[word], least);
    lower(&now.fences.newest[word], least);
    for (int w = 0; w < WORDS; ++w)
      for (int s = 0; s < now.words[w].count; ++s) lower(&now.words[w].carried[s].newest[word], least);
    it->count -= least;
    for (int s = 0; s < STORES; ++s) {
      const int is_left = s < it->count;
      it->value[s] = is_left ? it->value[s + least] : 0;
      it->is_release[s] = is_left ? it->is_release[s + least] : 0;
      if (is_left) it->carried[s] = it->carried[s + least];
      else memset(&it->carried[s], 0, sizeof it->carried[s]);
    }
  }

  /* Drops a word's stores that are older than every thread's view. */
  static void forget(int word) {
    int least = now.words[word].count - 1;
    for (int t = 0; t < THREADS; ++t)
      if (IS_LOADED_BY(t, word) && now.views[t].newest[word] < least) least = now.views[t].newest[word];
    if (least > 0) forget_some(word, least);
  }

  static void append(int is_known) {
    struct Word* it = &now.words[word_];
#ifdef ENDLESS
    if (it->count == STORES) forget_some(word_, 1);
#endif
    if (it->count == STORES) {
      printf("weak_memory.pml: word %d has more than %d stores that matter: raise STORES\n", word_, STORES);
      exit(2);
    }
    const int at = it->count++;
    it->value[at] = value_;
    it->is_release[at] = order_;
    if (!is_known) return;
    now.views[me_].newest[word_] = at;
    if (order_ == RELEASE) join_view(&it->carried[at], &now.views[me_]);
  }
  static void store() { append(1); forget(word_); }
  static void store_unseen() { append(0); forget(word_); }

  static void take() {
    struct Word* it = &now.words[word_];
    now.views[me_].newest[word_] = now.at_;
    if (order_ == ACQUIRE && it->is_release[now.at_]) join_view(&now.views[me_], &it->carried[now.at_]);
    value_ = it->value[now.at_];
    now.at_ = 0;
    forget(word_);
  }

  static void exchange() {
    struct Word* it = &now.words[word_];
    if (it->is_release[it->count - 1]) join_view(&now.views[me_], &it->carried[it->count - 1]);
    order_ = RELEASE;
    store();
  }

  static void fence() {
    join_view(&now.views[me_], &now.fences);
    join_view(&now.fences, &now.views[me_]);
    for (int w = 0; w < WORDS; ++w) forget(w);
  }

  /* The kernel tells `me_` of the end of thread `value_`: `me_` sees all its stores. */
  static void learn() { join_view(&now.views[me_], &now.views[value_]); }
}

#define ARGUMENTS(me, w, v, order) value_ = v; me_ = me; word_ = w; order_ = order

#define STORE(me, w, v, order) \
  d_step { ARGUMENTS(me, w, v, order); c_code { store(); } }

/* A store by a process whose own view does not matter. */
#define STORE_UNSEEN(w, v) \
  d_step { ARGUMENTS(0, w, v, RELAXED); c_code { store_unseen(); } }

#define LOAD(me, w, order, result) \
  atomic { \
    at_ = views[me].newest[w]; \
    do \
    :: break \
    :: at_ < LAST(w) -> at_++ \
    od; \
    skip; \
    d_step { ARGUMENTS(me, w, 0, order); c_code { take(); }; result = value_ } \
  }

/* Waits for a store that differs from `unlike`, and loads it. */
#define LOAD_UNLIKE(me, w, order, unlike, result) \
  atomic { \
    VALUE(w) != unlike -> at_ = views[me].newest[w]; \
    do \
    :: words[w].value[at_] != unlike -> break \
    :: at_ < LAST(w) -> at_++ \
    od; \
    skip; \
    d_step { ARGUMENTS(me, w, 0, order); c_code { take(); }; result = value_ } \
  }

#define EXCHANGE(me, w, v, result) \
  d_step { \
    result = VALUE(w); \
    ARGUMENTS(me, w, v, RELEASE); \
    c_code { exchange(); } \
  }

/* Compare and swap. Result: whether it succeeded. */
#define SWAP_IF(me, w, expected, v, result) \
  d_step { \
    result = (VALUE(w) == expected); \
    if \
    :: result -> ARGUMENTS(me, w, v, RELEASE); c_code { exchange(); } \
    :: else \
    fi \
  }

#define FENCE(me) d_step { me_ = me; c_code { fence(); } }
#define LEARN(me, other) d_step { me_ = me; value_ = other; c_code { learn(); } }

inline start_memory() {
  d_step { c_code { for (int w = 0; w < WORDS; ++w) now.words[w].count = 1; } }
}
