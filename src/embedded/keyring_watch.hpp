#pragma once
// Reads the key files of sealed sessions again when they have changed, so keys are replaced while programs run. If a
// file cannot be read, the keys stay as they were.

#include <sys/stat.h>

#include <array>
#include <memory>
#include <string>

#include "base/time.hpp"
#include "seal/keyring.hpp"

namespace fairlead::embedded {

class KeyringWatch {
 public:
  static constexpr base::Duration kLookEvery = std::chrono::seconds(1);

  explicit KeyringWatch(seal::KeyringFiles files) : files_(std::move(files)), seen_(look()) {}

  bool is_due(base::Instant now) const { return now >= look_at_; }
  /// Returns the keys if the files have changed since the last call and can be read; else null. Sets `complaint` if
  /// they have changed and cannot be read.
  std::shared_ptr<const seal::Keyring> next(base::Instant now, std::string& complaint);

 private:
  /// Attributes of a file that differ after a change of it.
  struct Stamp {
    dev_t device = 0;
    ino_t number = 0;
    off_t size = 0;
    std::int64_t written = 0, changed = 0;
    bool operator==(const Stamp&) const = default;
  };
  using Stamps = std::array<Stamp, 2>;

  static Stamp stamp_of(const std::string& path);
  Stamps look() const { return {stamp_of(files_.keys), stamp_of(files_.peers)}; }

  seal::KeyringFiles files_;
  Stamps seen_;
  base::Instant look_at_{};
};

}  // namespace fairlead::embedded
