#include "doors/ibverbs/refusal.hpp"

#include <cerrno>
#include <exception>
#include <mutex>
#include <set>
#include <string>

#include "base/log.hpp"

namespace fairlead::ibverbs {
namespace {

struct Noted {
  std::mutex mutex;
  std::set<std::string, std::less<>> texts;

  /// Returns false if the text is there already, or there are too many.
  bool add(std::string_view text) {
    const std::lock_guard guard(mutex);
    return texts.size() < kRefusalsNoted && texts.emplace(text).second;
  }
};
Noted& noted() {
  static auto* const noted = new Noted;  // never destroyed: programs make calls while they exit
  return *noted;
}

}  // namespace

void note_refusal(std::string_view text) noexcept try {
  if (noted().add(text)) base::log(LogLevel::warning, LogTopic::verbs, {}, text);
} catch (const std::exception&) {  // the program gets the error anyway
}

std::nullptr_t refuse(int code, std::string_view text) noexcept {
  note_refusal(text);
  errno = code;
  return nullptr;
}

}  // namespace fairlead::ibverbs
