#include "seal/keygen.hpp"

#include <string.h>

#include "base/owned_file.hpp"
#include "seal/known_peers.hpp"
#include "seal/libcrypto.hpp"
#include "seal/primitives.hpp"
#include "seal/random_source.hpp"

namespace fairlead::seal {
namespace {

std::string public_line(const Key& key, KeyKind kind, std::string_view addresses) {
  return kind == KeyKind::x25519 ? known_peers_line(addresses, public_key_of(key)) + "\n" : std::string();
}

/// Makes a key and passes it to `write` as a line of its file.
template <typename Write>
Result<std::string> make(KeyKind kind, std::string_view addresses, Write&& write) {
  if (auto loaded = load_libcrypto(); !loaded) return std::unexpected(std::move(loaded.error()));
  Key key;
  RandomSource::of_kernel().fill(key.bytes());
  std::string line = key_file_line(key, kind) + "\n";
  const Result<> written = write(line);
  ::explicit_bzero(line.data(), line.size());
  if (!written) return std::unexpected(written.error());
  return public_line(key, kind, addresses);
}

}  // namespace

Result<std::string> make_key_file(const std::string& path, KeyKind kind, std::string_view addresses) {
  return make(kind, addresses, [&](const std::string& line) { return base::create_secret_file(path, line); });
}

Result<std::string> add_key(const std::string& path, KeyKind kind, std::string_view addresses) {
  if (const auto keys = read_key_file(path, kind); !keys) return std::unexpected(keys.error());
  return make(kind, addresses, [&](const std::string& line) { return base::append_to_file(path, line); });
}

Result<std::string> public_lines(const std::string& path, std::string_view addresses) {
  if (auto loaded = load_libcrypto(); !loaded) return std::unexpected(std::move(loaded.error()));
  const auto keys = read_key_file(path, KeyKind::x25519);
  if (!keys) return std::unexpected(keys.error());
  std::string lines;
  for (const Key& key : *keys) lines += public_line(key, KeyKind::x25519, addresses);
  return lines;
}

}  // namespace fairlead::seal
