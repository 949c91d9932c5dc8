#include "host/pair_ring.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

namespace fairlead::host {
namespace {

constexpr std::uint32_t kYields = 200;
constexpr auto kRest = std::chrono::microseconds(50);

}  // namespace

Result<> PairRing::attach() {
  auto producer = queue::Producer::attach(segment_);
  if (!producer) return std::unexpected(std::move(producer.error()));
  requests_.emplace(std::move(*producer));
  return {};
}

bool PairRing::wait_a_moment(std::uint32_t step) {
  host_.wake();
  if (host_.look_for_end()) return false;
  if (step < kYields) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(kRest);
  }
  return true;
}

bool PairRing::push(PairRequest request, std::span<const std::byte> first, std::span<const std::byte> second) {
  const std::size_t elements = elements_of(first.size() + second.size());
  if (!has_room(elements) || host_.has_ended()) [[unlikely]]
    return false;
  const auto take = [&](std::span<std::byte> to) {
    for (auto* part : {&first, &second}) {
      const std::size_t length = std::min(part->size(), to.size());
      if (length > 0) std::memcpy(to.data(), part->data(), length);
      *part = part->subspan(length);
      to = to.subspan(length);
    }
  };
  take(request.begin);
  std::memcpy(requests_->pnext(), &request, sizeof request);
  requests_->put();
  for (std::size_t i = 1; i < elements; ++i) {
    std::byte* const element = requests_->pnext();
    take({element, sizeof(PairRequest)});
    requests_->put();
  }
  return true;
}

}  // namespace fairlead::host
