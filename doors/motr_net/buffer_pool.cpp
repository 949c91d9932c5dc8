// Pools of receive buffers, and their use by transfer machines. Lock order: the pool's mutex before the machines'.

#include <algorithm>
#include <iterator>
#include <list>
#include <memory>
#include <new>
#include <unordered_map>
#include <vector>

#include "doors/motr_net/include/motr_net.h"
#include "doors/motr_net/lists.hpp"
#include "doors/motr_net/refuse.hpp"

using fairlead::motr::is_any_null;
using fairlead::motr::Locked;
using fairlead::motr::refuse;

namespace {

using Buffers = std::list<m0_net_buffer*>;

/// The buffers in the pool: all, least recently used first, and those of each colour, most recent first. Each buffer's
/// list nodes are allocated once and kept while it is out of the pool.
struct Shelves {
  struct Place {
    Buffers::iterator in_all, in_colour;
    std::uint32_t colour;  // the last shelf: no colour
  };
  Buffers all, out_of_all;
  std::vector<Buffers> colours;
  Buffers out_of_colours;
  std::unordered_map<m0_net_buffer*, Place> places;
  std::vector<std::unique_ptr<m0_net_buffer>> owned;

  void take(m0_net_buffer* buf) {
    const Place& place = places.find(buf)->second;
    out_of_all.splice(out_of_all.end(), all, place.in_all);
    out_of_colours.splice(out_of_colours.end(), colours[place.colour], place.in_colour);
  }
  void put(m0_net_buffer* buf, std::uint32_t colour) {
    Place& place = places.find(buf)->second;
    place.colour = colour;
    all.splice(all.end(), out_of_all, place.in_all);
    colours[colour].splice(colours[colour].begin(), out_of_colours, place.in_colour);
  }
  /// Creates a buffer, which is out of the pool.
  m0_net_buffer* add() {
    m0_net_buffer* const buf = owned.emplace_back(std::make_unique<m0_net_buffer>()).get();
    *buf = {};
    try {
      Buffers in_all{buf}, in_colour{buf};
      places[buf] = {in_all.begin(), in_colour.begin(), 0};
      out_of_all.splice(out_of_all.end(), in_all);
      out_of_colours.splice(out_of_colours.end(), in_colour);
    } catch (const std::bad_alloc&) {
      owned.pop_back();
      throw;
    }
    return buf;
  }
  /// Removes a buffer that is out of the pool.
  void remove(m0_net_buffer* buf) {
    const auto place = places.find(buf);
    out_of_all.erase(place->second.in_all);
    out_of_colours.erase(place->second.in_colour);
    places.erase(place);
    std::erase_if(owned, [&](const auto& one) { return one.get() == buf; });
  }
};

Shelves& shelves_of(m0_net_buffer_pool* pool) {
  return *static_cast<Shelves*>(pool->nbp_private);
}

bool is_usable(const m0_net_buffer_pool* pool) {
  if (pool != nullptr && pool->nbp_private != nullptr && m0_net_buffer_pool_is_locked(pool)) return true;
  refuse(EBADFD, "the pool is not initialised, or not locked by this thread");
  return false;
}

std::uint32_t shelf_of(const m0_net_buffer_pool* pool, std::uint32_t colour) {
  return colour == M0_BUFFER_ANY_COLOUR ? pool->nbp_colours_nr : colour;
}

void shelve(m0_net_buffer_pool* pool, m0_net_buffer* buf, std::uint32_t colour) {
  buf->nb_ep = nullptr;
  buf->nb_is_pooled = true;
  shelves_of(pool).put(buf, shelf_of(pool, colour));
  ++pool->nbp_free;
}

bool make_one(m0_net_buffer_pool* pool) {
  Shelves& shelves = shelves_of(pool);
  m0_net_buffer* const buf = shelves.add();
  const bool has_memory =
      m0_bufvec_alloc_aligned(&buf->nb_buffer, pool->nbp_seg_nr, pool->nbp_seg_size, pool->nbp_align) == 0;
  if (!has_memory || m0_net_buffer_register(buf, pool->nbp_ndom) != 0) {
    m0_bufvec_free(&buf->nb_buffer);
    shelves.remove(buf);
    return false;
  }
  ++pool->nbp_buf_nr;
  buf->nb_pool = pool;
  m0_net_buffer_pool_put(pool, buf, M0_BUFFER_ANY_COLOUR);
  return true;
}

void destroy(m0_net_buffer_pool* pool, m0_net_buffer* buf) {
  Shelves& shelves = shelves_of(pool);
  shelves.take(buf);
  --pool->nbp_free;
  --pool->nbp_buf_nr;
  m0_net_buffer_deregister(buf, pool->nbp_ndom);
  m0_bufvec_free(&buf->nb_buffer);
  shelves.remove(buf);
}

}  // namespace

int m0_net_buffer_pool_init(m0_net_buffer_pool* pool, m0_net_domain* ndom, uint32_t threshold, uint32_t seg_nr,
                            m0_bcount_t seg_size, uint32_t colours, unsigned shift, bool) try {
  if (pool == nullptr || ndom == nullptr || ndom->nd_xprt == nullptr)
    return refuse(EBADFD, "the domain is not initialised");
  constexpr std::uint32_t kColoursMost = 1024;
  if (seg_nr == 0 || seg_size == 0 || colours > kColoursMost)
    return refuse(EINVAL, "a pool of buffers without bytes, or of more than 1024 colours");
  const m0_net_buffer_pool_ops* const ops = pool->nbp_ops;
  auto shelves = std::make_unique<Shelves>();
  shelves->colours.resize(colours + 1);
  *pool = {};
  pool->nbp_ops = ops;
  pool->nbp_threshold = threshold;
  pool->nbp_ndom = ndom;
  pool->nbp_seg_nr = seg_nr;
  pool->nbp_seg_size = seg_size;
  pool->nbp_align = shift;
  pool->nbp_colours_nr = colours;
  pool->nbp_private = shelves.release();
  m0_mutex_init(&pool->nbp_mutex);
  return 0;
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM, "no memory for a pool");
}

void m0_net_buffer_pool_fini(m0_net_buffer_pool* pool) {
  if (pool == nullptr || pool->nbp_private == nullptr || pool->nbp_free != pool->nbp_buf_nr) {
    refuse(EBUSY, "the pool is not initialised, or some of its buffers are out");
    return;
  }
  Shelves& shelves = shelves_of(pool);
  while (!shelves.all.empty()) destroy(pool, shelves.all.front());
  delete &shelves;
  m0_mutex_fini(&pool->nbp_mutex);
  *pool = {};
}

void m0_net_buffer_pool_lock(m0_net_buffer_pool* pool) {
  if (!is_any_null(pool)) m0_mutex_lock(&pool->nbp_mutex);
}
void m0_net_buffer_pool_unlock(m0_net_buffer_pool* pool) {
  if (!is_any_null(pool)) m0_mutex_unlock(&pool->nbp_mutex);
}
bool m0_net_buffer_pool_is_locked(const m0_net_buffer_pool* pool) {
  return !is_any_null(pool) && m0_mutex_is_locked(&pool->nbp_mutex);
}

int m0_net_buffer_pool_provision(m0_net_buffer_pool* pool, uint32_t buf_nr) {
  if (!is_usable(pool)) return 0;
  int made = 0;
  try {
    while (static_cast<uint32_t>(made) < buf_nr && make_one(pool)) ++made;
  } catch (const std::bad_alloc&) {
    refuse(ENOMEM, "no memory for a buffer");
  }
  return made;
}

bool m0_net_buffer_pool_prune(m0_net_buffer_pool* pool) {
  if (!is_usable(pool) || pool->nbp_free <= pool->nbp_threshold) return false;
  destroy(pool, shelves_of(pool).all.front());
  return true;
}

m0_net_buffer* m0_net_buffer_pool_get(m0_net_buffer_pool* pool, uint32_t colour) {
  if (!is_usable(pool)) return nullptr;
  if (colour != M0_BUFFER_ANY_COLOUR && colour >= pool->nbp_colours_nr) {
    refuse(EINVAL, "the pool has no such colour");
    return nullptr;
  }
  Shelves& shelves = shelves_of(pool);
  if (shelves.all.empty()) return nullptr;
  const Buffers& warm = shelves.colours[shelf_of(pool, colour)];
  m0_net_buffer* const buf = colour != M0_BUFFER_ANY_COLOUR && !warm.empty() ? warm.front() : shelves.all.front();
  shelves.take(buf);
  buf->nb_is_pooled = false;
  --pool->nbp_free;
  const bool is_low = pool->nbp_free < pool->nbp_threshold;
  if (is_low && pool->nbp_ops != nullptr && pool->nbp_ops->nbpo_below_threshold != nullptr)
    pool->nbp_ops->nbpo_below_threshold(pool);
  return buf;
}

void m0_net_buffer_pool_put(m0_net_buffer_pool* pool, m0_net_buffer* buf, uint32_t colour) {
  if (!is_usable(pool) || buf == nullptr) return;
  const bool is_idle = fairlead::motr::flags_of(*buf) == M0_NET_BUF_REGISTERED && !buf->nb_is_pooled;
  if (!is_idle || buf->nb_pool != pool || (colour != M0_BUFFER_ANY_COLOUR && colour >= pool->nbp_colours_nr)) {
    refuse(EINVAL, "the buffer is queued, of no or another pool, or in the pool, or there is no such colour");
    return;
  }
  shelve(pool, buf, colour);
  if (pool->nbp_free == 1 && pool->nbp_ops != nullptr && pool->nbp_ops->nbpo_not_empty != nullptr)
    pool->nbp_ops->nbpo_not_empty(pool);
}

// Provisioning ------------------------------------------------------------------------------------------------------

namespace fairlead::motr {

namespace {

std::uint64_t lacking(const m0_net_transfer_mc& tm) {
  const std::uint64_t queued = tm.ntm_q[M0_NET_QT_MSG_RECV].tl_length;
  const bool runs = tm.ntm_state == M0_NET_TM_STARTED;
  return runs && queued < tm.ntm_recv_queue_min_length ? tm.ntm_recv_queue_min_length - queued : 0;
}

bool queue_one(m0_net_transfer_mc& tm, std::uint32_t colour) {
  m0_net_buffer_pool* const pool = tm.ntm_recv_pool;
  const bool has_colour = colour < pool->nbp_colours_nr;
  m0_net_buffer* const buf = m0_net_buffer_pool_get(pool, has_colour ? colour : M0_BUFFER_ANY_COLOUR);
  if (buf == nullptr) return false;
  buf->nb_qtype = M0_NET_QT_MSG_RECV;
  buf->nb_callbacks = tm.ntm_recv_pool_callbacks;
  buf->nb_min_receive_size = tm.ntm_recv_queue_min_recv_size;
  buf->nb_max_receive_msgs = tm.ntm_recv_queue_max_recv_msgs;
  buf->nb_ep = nullptr;
  if (m0_net_buffer_add(buf, &tm) == 0) return true;
  shelve(pool, buf, M0_BUFFER_ANY_COLOUR);  // the buffer never left the pool, so no event is reported
  return false;
}

}  // namespace

void provision(m0_net_transfer_mc& tm) {
  for (bool goes_on = true; goes_on;) {
    std::uint32_t colour = 0;
    {
      const Locked lock(tm.ntm_mutex);
      const std::uint64_t deficit = lacking(tm);
      __atomic_store_n(&tm.ntm_recv_queue_deficit, deficit, __ATOMIC_RELAXED);
      colour = tm.ntm_pool_colour;
      goes_on = deficit > 0;
    }
    goes_on = goes_on && queue_one(tm, colour);
  }
}

void lock_and_provision(m0_net_transfer_mc& tm) {
  m0_net_buffer_pool* const pool = tm.ntm_recv_pool;
  const bool is_mine = m0_net_buffer_pool_is_locked(pool);
  if (!is_mine) m0_net_buffer_pool_lock(pool);
  provision(tm);
  if (!is_mine) m0_net_buffer_pool_unlock(pool);
}

}  // namespace fairlead::motr

void m0_net_domain_buffer_pool_not_empty(m0_net_buffer_pool* pool) {
  if (!is_usable(pool)) return;
  const Locked lock(pool->nbp_ndom->nd_mutex);
  for (m0_net_transfer_mc* tm = pool->nbp_ndom->nd_tms; tm != nullptr; tm = tm->ntm_next)
    if (tm->ntm_recv_pool == pool && __atomic_load_n(&tm->ntm_recv_queue_deficit, __ATOMIC_RELAXED) > 0)
      fairlead::motr::provision(*tm);
}
