#include "embedded/keyring_watch.hpp"

#include <fmt/format.h>

namespace fairlead::embedded {
namespace {

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

KeyringWatch::Stamp KeyringWatch::stamp_of(const std::string& path) {
  struct stat is{};
  if (path.empty() || ::lstat(path.c_str(), &is) != 0) return {};
  return {is.st_dev, is.st_ino, is.st_size, nanoseconds(is.st_mtim), nanoseconds(is.st_ctim)};
}

std::shared_ptr<const seal::Keyring> KeyringWatch::next(base::Instant now, std::string& complaint) {
  look_at_ = now + kLookEvery;
  const Stamps stamps = look();
  if (stamps == seen_) return nullptr;
  seen_ = stamps;
  auto ring = files_.read();
  if (ring) return std::make_shared<const seal::Keyring>(std::move(*ring));
  complaint = fmt::format("the keys stay as they were, for the new ones cannot be read: {}", ring.error().message);
  return nullptr;
}

}  // namespace fairlead::embedded
