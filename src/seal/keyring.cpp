#include "seal/keyring.hpp"

#include <fmt/format.h>

#include "base/environment.hpp"
#include "base/owned_file.hpp"
#include "base/shown.hpp"
#include "seal/primitives.hpp"

namespace fairlead::seal {
namespace {

constexpr std::string_view kPsk = "psk:", kStatic = "x25519";

std::string from_environment(const char* name) {
  const char* text = base::environment(name);
  return text == nullptr ? "" : text;
}

Result<std::string> settings_folder() {
  const std::string settings = from_environment("XDG_CONFIG_HOME"), home = from_environment("HOME");
  if (settings.starts_with('/')) return settings + "/fairlead";
  if (home.starts_with('/')) return home + "/.config/fairlead";
  return std::unexpected(
      Error{Status::invalid, 0, "seal x25519: there is no HOME to look for the key in: name its file"});
}

}  // namespace

Keyring Keyring::of_secrets(std::vector<Key> secrets) {
  Keyring ring;
  ring.keys = std::move(secrets);
  return ring;
}

Keyring Keyring::of_static_keys(std::vector<Key> keys, KnownPeers peers) {
  Keyring ring;
  ring.kind = KeyKind::x25519;
  ring.keys = std::move(keys);
  ring.peers = std::move(peers);
  for (const Key& key : ring.keys) ring.public_keys.push_back(public_key_of(key));
  return ring;
}

Result<KeyringFiles> KeyringFiles::parse(std::string_view text, std::string_view peers) {
  KeyringFiles files;
  if (text.starts_with(kPsk) && text.size() > kPsk.size()) {
    files.keys = text.substr(kPsk.size());
    return files;
  }
  files.kind = KeyKind::x25519;
  if (text == kStatic) {
    const auto folder = settings_folder();
    if (!folder) return std::unexpected(folder.error());
    files.keys = *folder + "/x25519";
  } else if (text.starts_with(kStatic) && text.size() > kStatic.size() + 1 && text[kStatic.size()] == ':') {
    files.keys = text.substr(kStatic.size() + 1);
  } else {
    return std::unexpected(
        Error{Status::invalid, 0, fmt::format("seal '{}': want psk:FILE, x25519:FILE or x25519", base::shown(text))});
  }
  const auto slash = files.keys.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : files.keys.substr(0, slash + 1);
  files.peers = peers.empty() ? folder + "known_peers" : std::string(peers);
  return files;
}

Result<Keyring> KeyringFiles::read() const {
  auto secrets = read_key_file(keys, kind);
  if (!secrets) return std::unexpected(std::move(secrets.error()));
  if (kind == KeyKind::pre_shared) return Keyring::of_secrets(std::move(*secrets));
  const auto text = base::read_owned_file(peers, base::FileTrust::trusted);
  if (!text) return std::unexpected(text.error());
  auto known = KnownPeers::parse(*text, peers);
  if (!known) return std::unexpected(std::move(known.error()));
  return Keyring::of_static_keys(std::move(*secrets), std::move(*known));
}

}  // namespace fairlead::seal
