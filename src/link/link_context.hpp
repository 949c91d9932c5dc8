#pragma once
// State that all parts of a link share.

#include <cstdint>

#include "link/agenda.hpp"
#include "link/hotel.hpp"
#include "link/link_counters.hpp"
#include "link/link_options.hpp"
#include "link/news.hpp"
#include "link/timeouts.hpp"

namespace fairlead::link {

struct LinkContext {
  LinkContext(const LinkOptions& its_options, std::uint32_t its_tag_bytes_at_most)
      : options(its_options),
        tag_bytes_at_most(its_tag_bytes_at_most),
        hotel(options.rooms_max),
        messages(options.messages_max),
        news(counters, hotel),
        timeouts(options) {}
  LinkContext(const LinkContext&) = delete;
  LinkContext& operator=(const LinkContext&) = delete;

  const LinkOptions options;
  const std::uint32_t tag_bytes_at_most;  // bytes that sealing may add to a datagram, for peers without a session
  LinkCounters counters;
  // Order matters: hotel and messages own the objects that the agenda links, so they are destroyed after it.
  Hotel hotel;
  ObjectPool<Message> messages;
  Agenda agenda;
  News news;
  Timeouts timeouts;
};

}  // namespace fairlead::link
