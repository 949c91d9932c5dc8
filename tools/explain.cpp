#include "tools/explain.hpp"

#include <fairlead/net/descriptor.hpp>
#include <fairlead/options.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstring>
#include <utility>

#include "engine/counter_catalog.hpp"
#include "tools/explain_verbs.hpp"

namespace fairlead::tools {
namespace {

struct Explanation {
  std::string_view name;  // as in Status
  std::string_view sentence;
};

// In the order of Status.
constexpr std::array<Explanation, 21> kExplanations{{
    {"ok", "it worked"},
    {"again", "a bounded queue is full and nothing was taken: take events or make progress, then try again"},
    {"canceled", "the owner cancelled the operation, or stopped its transfer machine, before it finished"},
    {"timed_out",
     "the deadline of the buffer passed first: give it more time, or ask why the other side did not answer"},
    {"too_late", "the deadline had already passed when the buffer was added, so nothing was sent: set a later one"},
    {"too_big",
     "the data is longer than the buffer that the descriptor names: send less, or let the peer expose a larger buffer"},
    {"message_size", "the message is longer than a message may be: use a bulk transfer, or cut it"},
    {"no_buffer", "the receiver had no receive buffer posted, so the message was dropped there: post more, or sooner"},
    {"not_permitted",
     "a descriptor of the wrong kind: only an active receive reads from a passive send buffer, only an active send "
     "writes to a passive receive buffer"},
    {"stale",
     "the descriptor belongs to a buffer that is done or to an earlier life of the peer: ask the peer for a new one"},
    {"invalid", "an argument is malformed; the message that came with it names the argument"},
    {"bad_state",
     "the object is not in a state that allows this: a transfer machine has to be started, a buffer registered and not "
     "queued"},
    {"unreachable", "the peer was never heard: check its address, that it runs, and that UDP passes between the hosts"},
    {"silent",
     "the peer was heard before, but acknowledged nothing for the give-up time: is it still running, is the network "
     "up? "
     "FAIRLEAD_GIVE_UP_AFTER sets the time"},
    {"restarted",
     "the peer's process is a new one, and what was pending to the old one is lost: exchange descriptors again"},
    {"refused", "nobody listens at the peer's port: start the peer, or correct the address"},
    {"no_memory", "a bounded pool is exhausted: wait for operations to end, or raise its bound (`fairlead options`)"},
    {"in_use", "the address is taken by another transfer machine or process: choose another one, or `*`"},
    {"not_available", "no address is free, or the address is not one of this host: `ip address` lists those that are"},
    {"not_supported", "not built in, or not possible here"},
    {"system", "the kernel refused a system call; the message that came with it names the call and the errno"},
}};
static_assert(kExplanations.size() == std::to_underlying(Status::system) + 1);

std::string plain(std::string_view word) {
  std::string text(word);
  std::ranges::transform(text, text.begin(), [](unsigned char c) {
    return c == '_' || c == '-' ? ' ' : static_cast<char>(std::tolower(c));
  });
  return text;
}

std::string errno_name(Status status) {
  const char* name = strerrorname_np(to_errno(status));
  return status == Status::ok || name == nullptr ? "0" : name;
}

std::string line_of(Status status) {
  const auto& [name, sentence] = kExplanations[std::to_underlying(status)];
  return fmt::format("{} ({}, {}): {}\n", name, errno_name(status), -to_errno(status), sentence);
}

bool stands_for(Status status, std::string_view word) {
  const std::string asked = plain(word);
  const std::string number = fmt::format("{}", to_errno(status));
  return asked == plain(kExplanations[std::to_underlying(status)].name) || asked == plain(to_string(status)) ||
         asked == plain(errno_name(status)) || word == number || word == "-" + number;
}

// By its whole name, or by the last word of it: "link.refused.replayed", "replayed".
bool is_called(std::string_view counter, std::string_view word) {
  return !word.empty() && (counter == word || plain(counter.substr(counter.rfind('.') + 1)) == plain(word));
}

/// "12", "0xc", "IBV_WC_RETRY_EXC_ERR", "retry_exc_err", "no_ack".
bool is_called(const VerbsWord& verbs, std::string_view word) {
  const std::string asked = plain(word), name = plain(verbs.name);
  return word == fmt::format("{}", verbs.number) || plain(word) == fmt::format("0x{:x}", verbs.number) ||
         asked == name || (asked.size() > 3 && name.starts_with("ibv ") && name.ends_with(" " + asked));
}

std::string line_of(const VerbsWord& word) {
  return fmt::format("{} ({} {}): {}\n", word.name, word.kind, word.number, word.sentence);
}

bool is_descriptor(std::string_view word) {
  return word.size() == 2 * net::kDescriptorSize && word.find_first_not_of("0123456789abcdefABCDEF") == word.npos;
}

Result<std::string> explain_descriptor(std::string_view digits) {
  net::BufferDescriptor descriptor;
  for (std::size_t i = 0; i < descriptor.size(); ++i) {
    unsigned value = 0;
    std::from_chars(digits.data() + 2 * i, digits.data() + 2 * i + 2, value, 16);
    descriptor[i] = static_cast<std::byte>(value);
  }
  auto facts = net::inspect(descriptor);
  if (!facts) return std::unexpected(std::move(facts.error()));
  return fmt::format("{} buffer of {} bytes at {}\n", to_string(facts->kind), facts->size, facts->address);
}

}  // namespace

Result<std::string> explain(std::string_view word) {
  if (is_descriptor(word)) return explain_descriptor(word);
  std::string lines;
  for (std::size_t i = 0; i < kExplanations.size(); ++i) {
    const auto status = static_cast<Status>(i);
    if (stands_for(status, word)) lines += line_of(status);
  }
  for (const auto& [name, sentence] : engine::counter_catalog()) {
    if (is_called(name, word)) lines += fmt::format("{} (a counter): {}\n", name, sentence);
  }
  for (const VerbsWord& verbs : verbs_words()) {
    if (is_called(verbs, word)) lines += line_of(verbs);
  }
  for (const OptionRow& option : option_table()) {
    if (word == option.name || word == option.environment)
      lines += fmt::format("{} (a setting, {}): {}\n", option.name, option.environment, option.sentence);
  }
  for (const WordOptionRow& option : word_option_table()) {
    if (word == option.name || word == option.environment)
      lines += fmt::format("{} (a setting, {}): {}\n", option.name, option.environment, option.sentence);
  }
  if (lines.empty()) {
    return std::unexpected(
        Error{Status::invalid, 0,
              fmt::format("no status, counter or setting is called '{}': `fairlead explain` lists all", word)});
  }
  return lines;
}

std::string explain_all() {
  std::string lines;
  for (std::size_t i = 0; i < kExplanations.size(); ++i) lines += line_of(static_cast<Status>(i));
  for (const VerbsWord& word : verbs_words()) lines += line_of(word);
  for (const auto& [name, sentence] : engine::counter_catalog()) lines += fmt::format("{}: {}\n", name, sentence);
  return lines;
}

}  // namespace fairlead::tools
