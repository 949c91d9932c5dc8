#include "tools/explain/explain.hpp"

#include <fairlead/net/descriptor.hpp>
#include <fairlead/options.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/shown.hpp"
#include "base/similar.hpp"
#include "engine/counter_catalog.hpp"
#include "engine/unknown_variables.hpp"
#include "tools/explain/word.hpp"

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
    {"message_size", "the message is longer than the largest message: use a bulk transfer, or split it"},
    {"no_buffer",
     "the receiver had no receive buffer posted, so the message was dropped there: post more buffers, or post them "
     "sooner"},
    {"not_permitted",
     "a descriptor of the wrong kind: an active receive reads from a passive send buffer, an active send writes to a "
     "passive receive buffer"},
    {"stale",
     "the descriptor belongs to a completed buffer or to an earlier process of the peer: ask the peer for a new one"},
    {"invalid", "an argument is malformed; the message that came with it names the argument"},
    {"bad_state",
     "the object is not in a state that allows this: a transfer machine must be started, a buffer registered and not "
     "queued"},
    {"unreachable",
     "the peer has never answered: is it running, is its address right, and does UDP pass between the hosts?"},
    {"silent",
     "the peer answered before, but acknowledged nothing for the give-up time: is it still running, is the network up? "
     "FAIRLEAD_GIVE_UP_AFTER sets the time"},
    {"restarted",
     "the peer's process is a new one, and operations pending to the old one are lost: exchange descriptors again. "
     "With "
     "FAIRLEAD_CORE=host also: fairleadd has ended"},
    {"refused",
     "nobody listens at the peer's port, the process there has no such transfer machine, or it has closed the "
     "connection "
     "or refuses this engine's key: `describe(end_point, status)` and the log (FAIRLEAD_LOG=info) say which"},
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

/// Returns the name of a status in <fairlead/net.h>.
std::string c_name(std::string_view name) {
  std::string text = "FAIRLEAD_";
  for (const unsigned char letter : name) text += static_cast<char>(std::toupper(letter));
  return text;
}

std::string line_of(const StatusWord& word) {
  return fmt::format("{} ({}, {}): {}\n", word.name, word.errno_name, -word.number, word.sentence);
}

bool stands_for(const StatusWord& status, std::string_view text, std::string_view word) {
  const std::string asked = plain(word), number = fmt::format("{}", status.number);
  return asked == plain(status.name) || asked == plain(text) || asked == plain(status.errno_name) ||
         asked == plain(status.c_name) || asked == "errno " + number || word == number || word == "-" + number;
}

// Returns whether `word` is the counter's name or its last part: "link.refused.replayed", "replayed".
bool is_called(std::string_view counter, std::string_view word) {
  return !word.empty() && (counter == word || plain(counter.substr(counter.rfind('.') + 1)) == plain(word));
}

/// Returns whether `word` is the entry's number: "12", "0xc", or with its kind, "vendor_err 12".
bool is_numbered(const Word& entry, std::string_view asked) {
  if (const std::string kind = plain(entry.kind) + " "; asked.starts_with(kind)) asked.remove_prefix(kind.size());
  return asked == fmt::format("{}", entry.number) || asked == fmt::format("0x{:x}", entry.number);
}

/// Returns whether `word` names the entry: "12", "IBV_WC_RETRY_EXC_ERR", "retry_exc_err", "no_ack", "RTS", or the text
/// that programs print for it.
bool is_called(const Word& entry, std::string_view word) {
  const std::string asked = plain(word), name = plain(entry.name);
  if (asked.empty()) return false;
  return is_numbered(entry, asked) || asked == name || asked == plain(entry.short_name) || asked == plain(entry.text) ||
         (asked.size() > 3 && name.starts_with("ib") && name.ends_with(" " + asked));
}

template <typename Visit>
void for_each_word(Visit&& visit) {
  for (const Word& word : verbs_words()) visit(word);
  for (const Word& word : manager_words()) visit(word);
  for (const Word& word : message_words()) visit(word);
}

/// Calls visit(name, variable, line) for each setting.
template <typename Visit>
void for_each_setting(Visit&& visit) {
  const auto show = [&](const auto& option) {
    visit(option.name, option.environment,
          fmt::format("{} (a setting, {}): {}\n", option.name, option.environment, option.sentence));
  };
  for (const OptionRow& option : option_table()) show(option);
  for (const WordOptionRow& option : word_option_table()) show(option);
  for (const engine::VariableRow& row : engine::other_variables())
    visit(row.name, row.name, fmt::format("{} (a variable, {}): {}\n", row.name, row.wanted, row.sentence));
}

/// Explains an errno of the kernel that has no status.
std::string explain_errno(std::string_view word) {
  constexpr int kMost = 200;
  std::string lines;
  for (int number = 1; number < kMost; ++number) {
    const char* const name = strerrorname_np(number);
    const std::string text = fmt::format("{}", number);
    if (name != nullptr && (plain(word) == plain(name) || word == text || word == "-" + text))
      lines += fmt::format("{} (errno {}): {}\n", name, number, strerrordesc_np(number));
  }
  return lines;
}

std::string line_of(const Word& word) {
  return fmt::format("{} ({} {}): {}\n", word.name, word.kind, word.number, word.sentence);
}

/// Returns "did you mean ...? " if a known word is similar.
std::string suggestion(std::string_view word) {
  const std::vector<engine::CounterMeaning> counters = engine::counter_catalog();
  std::vector<std::string_view> known;
  for (const Explanation& one : kExplanations) known.push_back(one.name);
  for (const auto& [name, sentence, kind] : counters) known.push_back(name);
  for_each_word([&](const Word& entry) {
    known.push_back(entry.name);
    if (!entry.short_name.empty()) known.push_back(entry.short_name);
  });
  for_each_setting([&](std::string_view name, std::string_view variable, const std::string&) {
    known.push_back(name);
    known.push_back(variable);
  });
  std::vector<std::string> c_names;
  for (const StatusWord& status : status_words()) c_names.push_back(status.c_name);
  known.insert(known.end(), c_names.begin(), c_names.end());
  // The beginning that all variables share makes none of them similar.
  constexpr std::string_view kOurs = "FAIRLEAD_";
  const std::size_t letters = word.size() - (word.starts_with(kOurs) ? kOurs.size() : 0);
  const auto similar = base::most_similar(word, known, letters);
  return similar ? fmt::format("did you mean {}? ", *similar) : "";
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

std::vector<StatusWord> status_words() {
  std::vector<StatusWord> words;
  for (std::size_t i = 0; i < kExplanations.size(); ++i) {
    const auto status = static_cast<Status>(i);
    words.push_back({kExplanations[i].name, errno_name(status), to_errno(status), kExplanations[i].sentence,
                     c_name(kExplanations[i].name), static_cast<int>(i)});
  }
  return words;
}

Result<std::string> explain(std::string_view word) {
  if (is_descriptor(word)) return explain_descriptor(word);
  std::string lines;
  const std::vector<StatusWord> statuses = status_words();
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    if (stands_for(statuses[i], to_string(static_cast<Status>(i)), word)) lines += line_of(statuses[i]);
  }
  if (lines.empty()) lines = explain_errno(word);
  for (const StatusWord& status : statuses) {
    if (word == fmt::format("{}", status.c_number) || plain(word) == fmt::format("status {}", status.c_number))
      lines += fmt::format("{} (status {} in C): {}\n", status.c_name, status.c_number, status.sentence);
  }
  for (const auto& [name, sentence, kind] : engine::counter_catalog()) {
    if (is_called(name, word)) lines += fmt::format("{} (a counter): {}\n", name, sentence);
  }
  for_each_word([&](const Word& entry) {
    if (is_called(entry, word)) lines += line_of(entry);
  });
  for_each_setting([&](std::string_view name, std::string_view variable, const std::string& line) {
    if (word == name || word == variable) lines += line;
  });
  if (lines.empty()) {
    return std::unexpected(Error{
        Status::invalid, 0,
        fmt::format("no status, errno, event, state, counter or setting is called '{}': {}`fairlead explain` lists all",
                    base::shown(word), suggestion(word))});
  }
  return lines;
}

std::string explain_all() {
  std::string lines;
  for (const StatusWord& status : status_words()) lines += line_of(status);
  for_each_word([&](const Word& word) { lines += line_of(word); });
  for (const auto& [name, sentence, kind] : engine::counter_catalog())
    lines += fmt::format("{} (a counter): {}\n", name, sentence);
  for_each_setting([&](std::string_view, std::string_view, const std::string& line) { lines += line; });
  return lines;
}

}  // namespace fairlead::tools
