#include "queue/producer.hpp"

#include <fmt/format.h>

#include <utility>

namespace fairlead::queue {

Result<Producer> Producer::attach(SegmentSource& source) {
  SegmentTable segments(&source);
  auto* base = segments.resolve({}, sizeof(Header));
  if (base == nullptr) {
    return std::unexpected(Error{Status::invalid, 0,
                                 fmt::format("event queue: segment 0 is missing or shorter than "
                                             "its header of {} bytes: hand over the whole segment",
                                             sizeof(Header))});
  }
  auto* header = reinterpret_cast<Header*>(base);
  const auto mark = header->mark.load(std::memory_order_acquire);
  if (mark != kHeaderMark) {
    return std::unexpected(Error{Status::invalid, 0,
                                 fmt::format("event queue: header mark {:#x} is not {:#x}: not an "
                                             "event queue, or one of another version",
                                             mark, kHeaderMark)});
  }
  const auto element_bytes = header->element_bytes.load(std::memory_order_relaxed);
  if (!is_element_size(element_bytes)) {
    return std::unexpected(Error{Status::invalid, 0,
                                 fmt::format("event queue: element size {} is not a multiple of 8 "
                                             "up to {}: the header is damaged, make the queue anew",
                                             element_bytes, kElementBytesMax)});
  }
  Producer producer(std::move(segments), header, static_cast<std::uint32_t>(element_bytes));
  Place start;
  const RunLocation first_run{static_cast<std::uint32_t>(header->first_run.load(std::memory_order_relaxed))};
  if (!producer.read(first_run, start)) {
    return std::unexpected(Error{Status::invalid, 0,
                                 fmt::format("event queue: its first run at {:#x} makes no sense: "
                                             "the segment is damaged, make the queue anew",
                                             first_run.word)});
  }
  producer.stand_on(start, 0);
  return producer;
}

Producer::Producer(SegmentTable segments, Header* header, std::uint32_t element_bytes)
    : produced_(header->first_number.load(std::memory_order_relaxed)),
      limit_(produced_),
      element_bytes_(element_bytes),
      header_(header),
      segments_(std::move(segments)) {}

Producer::Position Producer::position() const noexcept {
  Position position{.produced = produced_, .epoch = epoch_, .shape = place_.shape.pack(), .is_refused = true};
  if (element_ == nullptr) return position;
  const auto offset = reinterpret_cast<std::uintptr_t>(place_.run) - reinterpret_cast<std::uintptr_t>(header_);
  position.run = RunLocation::of({{}, static_cast<std::uint32_t>(offset)}).word;
  position.index = static_cast<std::uint32_t>((element_ - place_.elements) / element_bytes_);
  position.is_refused = false;
  return position;
}

Result<Producer> Producer::resume(SegmentSource& source, const Position& position) {
  auto producer = attach(source);
  if (!producer) return producer;
  Place place;
  const bool is_there = position.is_refused || producer->read({position.run}, place);
  place.shape = Shape::unpack(position.shape);  // the run may have been cut since it was read
  const std::uint64_t bytes = std::uint64_t{place.shape.count} * producer->element_bytes_;
  if (!is_there || (!position.is_refused && (position.index >= place.shape.count ||
                                             producer->segments_.resolve(place.first, bytes) == nullptr))) {
    return std::unexpected(Error{Status::invalid, 0, "event queue: the place where its producer stood is not there"});
  }
  producer->epoch_ = position.epoch;
  producer->produced_ = producer->limit_ = position.produced;
  if (position.is_refused) {
    producer->element_ = nullptr;
  } else {
    producer->stand_on(place, position.index);
  }
  return producer;
}

// Reads the grant before the epoch. A grant that needs a changed ring is stored after the ring's epoch. So a reader
// that sees the grant sees the epoch, and then the ring.
bool Producer::look() noexcept {
  if (element_ == nullptr) return refuse();
  const auto grant = header_->grant.load(std::memory_order_acquire);
  const auto room_seen = grant - produced_;
  if (room_seen == 0) {
    status_ = Status::again;
    return false;
  }
  const auto size = header_->size.load(std::memory_order_relaxed);
  if (size > kElementsMax || room_seen >= size) return refuse();
  const auto epoch = header_->epoch.load(std::memory_order_acquire);
  if (epoch != epoch_) {
    if (!find_place_again()) return refuse();
    epoch_ = epoch;
  }
  limit_ = grant;
  return true;
}

bool Producer::refuse() noexcept {
  status_ = Status::invalid;
  return false;
}

// Reads each word once, then checks it: `place` then lies inside a segment, whatever the other side does.
bool Producer::read(RunLocation location, Place& place) noexcept {
  auto* base = segments_.resolve(location.place(), sizeof(Run));
  if (base == nullptr) return false;
  auto* run = reinterpret_cast<Run*>(base);
  if (run->mark.load(std::memory_order_relaxed) != blessing_of(location)) return false;
  const auto shape = Shape::unpack(run->shape.load(std::memory_order_acquire));
  const auto first = Location::unpack(run->first.load(std::memory_order_relaxed));
  if (shape.count == 0 || first.offset % alignment_of(element_bytes_) != 0) return false;
  auto* elements = segments_.resolve(first, std::uint64_t{shape.count} * element_bytes_);
  if (elements == nullptr) return false;
  place = {run, first, elements, shape};
  return true;
}

void Producer::stand_on(const Place& place, std::uint32_t index) noexcept {
  place_ = place;
  left_ = place.shape.count - 1 - index;
  element_ = place.elements + std::size_t{index} * element_bytes_;
}

// Moves to the first element of the next run. The link is the one that was read together with the count. The run may
// have been cut since, but only behind the position of this lap.
void Producer::cross() noexcept {
  Place next;
  if (read(place_.shape.next, next)) {
    stand_on(next, 0);
  } else {
    element_ = nullptr;
    limit_ = produced_ + left_ + 1;  // publishing ends here; the next poll refuses
  }
}

// The ring has grown: our run may be longer, have a new successor, or have been cut before or after our element. The
// pieces of a cut run are chained by `rest` in the order of their elements. So each step comes nearer to our element,
// and there are at most as many steps as elements.
bool Producer::find_place_again() noexcept {
  const std::uint64_t own = place_.first.offset + static_cast<std::uint64_t>(element_ - place_.elements);
  RunLocation location{};
  Place piece = place_;
  piece.shape = Shape::unpack(place_.run->shape.load(std::memory_order_acquire));
  for (;;) {
    const auto bytes = std::uint64_t{piece.shape.count} * element_bytes_;
    if (piece.shape.count == 0 || segments_.resolve(piece.first, bytes) == nullptr) return false;
    if (own < piece.first.offset + bytes) break;
    location.word = static_cast<std::uint32_t>(piece.run->rest.load(std::memory_order_relaxed));
    const auto before = piece.first;
    if (location.is_none() || !read(location, piece)) return false;
    if (piece.first.segment != before.segment || piece.first.offset <= before.offset || piece.first.offset > own) {
      return false;
    }
  }
  if ((own - piece.first.offset) % element_bytes_ != 0) return false;
  stand_on(piece, static_cast<std::uint32_t>((own - piece.first.offset) / element_bytes_));
  return true;
}

}  // namespace fairlead::queue
