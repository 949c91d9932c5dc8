// Motr's lib: time, vectors, bitmaps.

#include <fairlead/net.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "doors/motr_net/include/motr_net.h"
#include "doors/motr_net/refuse.hpp"

using fairlead::motr::is_any_null;
using fairlead::motr::refuse;

// Time --------------------------------------------------------------------------------------------------------------

m0_time_t m0_time_now(void) {
  return static_cast<m0_time_t>(fairlead_net_now());
}
m0_time_t m0_time(uint64_t seconds, long ns) {
  return seconds * M0_TIME_ONE_SECOND + static_cast<m0_time_t>(ns);
}
m0_time_t m0_time_from_now(uint64_t seconds, long ns) {
  return m0_time_add(m0_time_now(), m0_time(seconds, ns));
}
m0_time_t m0_time_add(m0_time_t a, m0_time_t b) {
  return a == M0_TIME_NEVER || b == M0_TIME_NEVER ? M0_TIME_NEVER : a + b;
}
m0_time_t m0_time_sub(m0_time_t a, m0_time_t b) {
  return a == M0_TIME_NEVER ? M0_TIME_NEVER : a - b;
}
uint64_t m0_time_seconds(m0_time_t time) {
  return time / M0_TIME_ONE_SECOND;
}
uint64_t m0_time_nanoseconds(m0_time_t time) {
  return time % M0_TIME_ONE_SECOND;
}
bool m0_time_is_in_past(m0_time_t time) {
  return time < m0_time_now();
}

// Vectors -----------------------------------------------------------------------------------------------------------

m0_bcount_t m0_vec_count(const m0_vec* vec) {
  if (is_any_null(vec) || (vec->v_nr > 0 && is_any_null(vec->v_count))) return 0;
  m0_bcount_t all = 0;
  for (uint32_t i = 0; i < vec->v_nr; ++i) all += vec->v_count[i];
  return all;
}

int m0_bufvec_alloc(m0_bufvec* bufvec, uint32_t segments, m0_bcount_t segment_size) {
  return m0_bufvec_alloc_aligned(bufvec, segments, segment_size, 4);
}

int m0_bufvec_alloc_aligned(m0_bufvec* bufvec, uint32_t segments, m0_bcount_t segment_size, unsigned shift) {
  if (is_any_null(bufvec)) return -EINVAL;
  *bufvec = {};
  if (segments == 0 || segment_size == 0 || shift > 30) return refuse(EINVAL, "a vector without bytes");
  bufvec->ov_vec.v_count = static_cast<m0_bcount_t*>(std::calloc(segments, sizeof(m0_bcount_t)));
  bufvec->ov_buf = static_cast<void**>(std::calloc(segments, sizeof(void*)));
  bool is_there = bufvec->ov_vec.v_count != nullptr && bufvec->ov_buf != nullptr;
  const std::size_t alignment = std::max(std::size_t{1} << shift, sizeof(void*));
  for (uint32_t i = 0; is_there && i < segments; ++i) {
    is_there = ::posix_memalign(&bufvec->ov_buf[i], alignment, segment_size) == 0;
    if (!is_there) break;
    std::memset(bufvec->ov_buf[i], 0, segment_size);
    bufvec->ov_vec.v_count[i] = segment_size;
    bufvec->ov_vec.v_nr = i + 1;
  }
  if (is_there) return 0;
  m0_bufvec_free(bufvec);
  return refuse(ENOMEM, "no memory for a vector");
}

void m0_bufvec_free(m0_bufvec* bufvec) {
  if (is_any_null(bufvec)) return;
  for (uint32_t i = 0; bufvec->ov_buf != nullptr && i < bufvec->ov_vec.v_nr; ++i) std::free(bufvec->ov_buf[i]);
  std::free(static_cast<void*>(bufvec->ov_buf));
  std::free(bufvec->ov_vec.v_count);
  *bufvec = {};
}

void m0_bufvec_free_aligned(m0_bufvec* bufvec, unsigned) {
  m0_bufvec_free(bufvec);
}

namespace {
bool has_memory(const m0_bufvec_cursor* cursor) {
  return !is_any_null(cursor) && !is_any_null(cursor->bc_vec) &&
         !is_any_null(cursor->bc_vec->ov_buf, cursor->bc_vec->ov_vec.v_count);
}
}  // namespace

void m0_bufvec_cursor_init(m0_bufvec_cursor* cursor, const m0_bufvec* bufvec) {
  if (is_any_null(cursor)) return;
  *cursor = {bufvec, 0, 0};
  m0_bufvec_cursor_move(cursor, 0);
}

bool m0_bufvec_cursor_move(m0_bufvec_cursor* cursor, m0_bcount_t bytes) {
  if (!has_memory(cursor)) return true;
  const m0_vec& vec = cursor->bc_vec->ov_vec;
  cursor->bc_offset += bytes;
  while (cursor->bc_segment < vec.v_nr && cursor->bc_offset >= vec.v_count[cursor->bc_segment])
    cursor->bc_offset -= vec.v_count[cursor->bc_segment++];
  return cursor->bc_segment == vec.v_nr;
}

m0_bcount_t m0_bufvec_cursor_step(const m0_bufvec_cursor* cursor) {
  if (!has_memory(cursor)) return 0;
  const m0_vec& vec = cursor->bc_vec->ov_vec;
  return cursor->bc_segment < vec.v_nr ? vec.v_count[cursor->bc_segment] - cursor->bc_offset : 0;
}

void* m0_bufvec_cursor_addr(m0_bufvec_cursor* cursor) {
  if (m0_bufvec_cursor_step(cursor) == 0) return nullptr;
  return static_cast<char*>(cursor->bc_vec->ov_buf[cursor->bc_segment]) + cursor->bc_offset;
}

m0_bcount_t m0_bufvec_cursor_copy(m0_bufvec_cursor* to, m0_bufvec_cursor* from, m0_bcount_t bytes) {
  m0_bcount_t done = 0;
  while (done < bytes) {
    const m0_bcount_t step = std::min({bytes - done, m0_bufvec_cursor_step(to), m0_bufvec_cursor_step(from)});
    if (step == 0) break;
    std::memmove(m0_bufvec_cursor_addr(to), m0_bufvec_cursor_addr(from), step);
    m0_bufvec_cursor_move(to, step);
    m0_bufvec_cursor_move(from, step);
    done += step;
  }
  return done;
}

m0_bcount_t m0_bufvec_cursor_copyto(m0_bufvec_cursor* to, void* from, m0_bcount_t bytes) {
  if (is_any_null(from)) return 0;
  const m0_bufvec plain{{1, &bytes}, &from};
  m0_bufvec_cursor cursor;
  m0_bufvec_cursor_init(&cursor, &plain);
  return m0_bufvec_cursor_copy(to, &cursor, bytes);
}

m0_bcount_t m0_bufvec_cursor_copyfrom(m0_bufvec_cursor* from, void* to, m0_bcount_t bytes) {
  if (is_any_null(to)) return 0;
  const m0_bufvec plain{{1, &bytes}, &to};
  m0_bufvec_cursor cursor;
  m0_bufvec_cursor_init(&cursor, &plain);
  return m0_bufvec_cursor_copy(&cursor, from, bytes);
}

// Bitmaps -----------------------------------------------------------------------------------------------------------

int m0_bitmap_init(m0_bitmap* map, size_t bits) {
  if (is_any_null(map)) return -EINVAL;
  map->b_nr = bits;
  map->b_words = static_cast<uint64_t*>(std::calloc(bits / 64 + 1, sizeof(uint64_t)));
  return map->b_words != nullptr ? 0 : refuse(ENOMEM, "no memory for a bitmap");
}

void m0_bitmap_fini(m0_bitmap* map) {
  if (is_any_null(map)) return;
  std::free(map->b_words);
  *map = {};
}

bool m0_bitmap_get(const m0_bitmap* map, size_t bit) {
  return !is_any_null(map) && bit < map->b_nr && (map->b_words[bit / 64] >> bit % 64 & 1) != 0;
}

void m0_bitmap_set(m0_bitmap* map, size_t bit, bool value) {
  if (is_any_null(map)) return;
  if (bit >= map->b_nr) {
    refuse(EINVAL, "a bit that the bitmap has not");
    return;
  }
  const uint64_t one = uint64_t{1} << bit % 64;
  map->b_words[bit / 64] = value ? map->b_words[bit / 64] | one : map->b_words[bit / 64] & ~one;
}
