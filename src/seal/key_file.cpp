#include "seal/key_file.hpp"

#include <fmt/format.h>
#include <string.h>

#include "base/owned_file.hpp"
#include "seal/hex.hpp"
#include "seal/words.hpp"

namespace fairlead::seal {
namespace {

constexpr std::size_t kKeysMost = 8;

std::string_view word_of(KeyKind kind) {
  return kind == KeyKind::pre_shared ? "psk" : "x25519-secret";
}

}  // namespace

Result<std::vector<Key>> parse_key_file(std::string_view text, std::string_view path, KeyKind kind) {
  std::vector<Key> keys;
  keys.reserve(kKeysMost);  // a growing vector would leave copies of keys behind
  std::vector<std::string_view> words;
  for (int line = 1; next_line(text, words); ++line) {
    if (words.empty()) continue;
    // The error does not show the line: it may hold a key.
    const auto wrong = [&](std::string_view why) {
      return std::unexpected(Error{Status::invalid, 0, fmt::format("{}:{}: {}", path, line, why)});
    };
    Key key;
    if (words.size() < 2 || words[0] != word_of(kind) || !from_hex(words[1], key.bytes()))
      return wrong(fmt::format("want `{} KEY`, KEY of 64 hexadecimal digits", word_of(kind)));
    if (keys.size() == kKeysMost) return wrong(fmt::format("more than {} keys", kKeysMost));
    keys.push_back(key);
  }
  if (keys.empty()) {
    return std::unexpected(Error{Status::invalid, 0,
                                 fmt::format("{}: has no key: `fairlead keygen{} FILE` makes one", path,
                                             kind == KeyKind::pre_shared ? " --psk" : "")});
  }
  return keys;
}

Result<std::vector<Key>> read_key_file(const std::string& path, KeyKind kind) {
  auto text = base::read_owned_file(path, base::FileTrust::secret);
  if (!text) return std::unexpected(std::move(text.error()));
  auto keys = parse_key_file(*text, path, kind);
  ::explicit_bzero(text->data(), text->size());
  return keys;
}

std::string key_file_line(const Key& key, KeyKind kind) {
  return fmt::format("{} {}", word_of(kind), to_hex(key.bytes()));
}

}  // namespace fairlead::seal
