#include <fairlead/am/endpoint.hpp>

#include "am/bundle_state.hpp"

namespace fairlead::am {

Endpoint::~Endpoint() = default;

Name Endpoint::name() const {
  return state_->name();
}

Bundle& Endpoint::bundle() const {
  return state_->bundle->face;
}

// What may come in ---------------------------------------------------------------------------------------------------

void Endpoint::set_tag(const Tag& tag) {
  BundleState::Lock lock(state_->bundle->lock);
  state_->tag = tag;
  if (state_->is_inherited()) return;
  state_->ports.set_access(state_->port,
                           {.kind = static_cast<engine::AccessRule::Kind>(tag.rule == Tag::Rule::none  ? 0
                                                                          : tag.rule == Tag::Rule::key ? 1
                                                                                                       : 2),
                            .access = tag.key});
}

Tag Endpoint::tag() const {
  BundleState::Lock lock(state_->bundle->lock);
  return state_->tag;
}

void Endpoint::set_segment(void* base, std::uint64_t length) {
  BundleState::Lock lock(state_->bundle->lock);
  state_->segment = {static_cast<std::byte*>(base), length};
  if (!state_->is_inherited()) state_->ports.set_segment(state_->port, state_->segment);
}

std::span<std::byte> Endpoint::segment() const {
  BundleState::Lock lock(state_->bundle->lock);
  return {state_->segment.base, static_cast<std::size_t>(state_->segment.length)};
}

Status Endpoint::set_handler(std::uint8_t index, Handler handler, void* context, HandlerShape shape) {
  if (index == 0 || handler == nullptr) return Status::invalid;
  BundleState::Lock lock(state_->bundle->lock);
  state_->handlers[index] = {handler, context, shape};
  return Status::ok;
}

Status Endpoint::set_handler_any(std::uint8_t& index, Handler handler, void* context) {
  if (handler == nullptr) return Status::invalid;
  BundleState::Lock lock(state_->bundle->lock);
  for (unsigned i = 1; i < kHandlers; ++i) {
    if (state_->handlers[i].handler != nullptr) continue;
    state_->handlers[i] = {handler, context, {}};
    index = static_cast<std::uint8_t>(i);
    return Status::ok;
  }
  return Status::no_memory;
}

void Endpoint::set_error_handler(ErrorHandler handler, void* context) {
  BundleState::Lock lock(state_->bundle->lock);
  state_->error_handler = handler;
  state_->error_context = context;
}

// Peers --------------------------------------------------------------------------------------------------------------

Status Endpoint::set_translations(std::uint32_t count) {
  BundleState::Lock lock(state_->bundle->lock);
  return state_->resize(count);
}

std::uint32_t Endpoint::translations() const {
  BundleState::Lock lock(state_->bundle->lock);
  return static_cast<std::uint32_t>(state_->translations.size());
}

Status Endpoint::map(std::uint32_t index, const Name& name, std::uint64_t key) {
  BundleState::Lock lock(state_->bundle->lock);
  return state_->map(index, name, key);
}

Status Endpoint::map_any(std::uint32_t& index, const Name& name, std::uint64_t key) {
  BundleState::Lock lock(state_->bundle->lock);
  for (std::uint32_t i = 0; i < state_->translations.size(); ++i) {
    if (state_->translations[i].is_used) continue;
    index = i;
    return state_->map(i, name, key);
  }
  return Status::no_memory;
}

Status Endpoint::unmap(std::uint32_t index) {
  BundleState::Lock lock(state_->bundle->lock);
  return state_->unmap(index);
}

Status Endpoint::set_translation_key(std::uint32_t index, std::uint64_t key) {
  BundleState::Lock lock(state_->bundle->lock);
  if (index >= state_->translations.size()) return Status::invalid;
  if (!state_->translations[index].is_used) return Status::not_available;
  state_->translations[index].key = key;
  return Status::ok;
}

Status Endpoint::translation(std::uint32_t index, Name& name, std::uint64_t& key) const {
  BundleState::Lock lock(state_->bundle->lock);
  if (index >= state_->translations.size()) return Status::invalid;
  const auto& translation = state_->translations[index];
  if (!translation.is_used) return Status::not_available;
  name = {translation.peer.engine.ip, translation.peer.engine.port, translation.peer.port};
  key = translation.key;
  return Status::ok;
}

std::string Endpoint::describe(std::uint32_t index) const {
  BundleState::Lock lock(state_->bundle->lock);
  if (state_->is_inherited() || index >= state_->translations.size() || !state_->translations[index].is_used) return {};
  return state_->core.describe_peer(state_->translations[index].peer.engine);
}

Status Endpoint::set_depth(unsigned depth) {
  if (depth == 0 || depth > kDepthMax) return Status::invalid;
  BundleState::Lock lock(state_->bundle->lock);
  state_->depth = depth;
  return Status::ok;
}

unsigned Endpoint::depth() const {
  BundleState::Lock lock(state_->bundle->lock);
  return state_->depth;
}

std::size_t Endpoint::outstanding() const {
  BundleState::Lock lock(state_->bundle->lock);
  return state_->outstanding;
}

std::uint64_t Endpoint::requests_to_left() const {
  BundleState::Lock lock(state_->bundle->lock);
  return state_->requests_to_left;
}

// Requests -----------------------------------------------------------------------------------------------------------

Status Endpoint::request(std::uint32_t to, std::uint8_t handler, std::span<const Argument> arguments) {
  BundleState::Lock lock(state_->bundle->lock);
  return state_->send(lock, {.to = to, .word = {Word::Kind::brief, handler}, .data = {}, .arguments = arguments});
}

Status Endpoint::request_medium(std::uint32_t to, std::uint8_t handler, std::span<const std::byte> data,
                                std::span<const Argument> arguments) {
  BundleState::Lock lock(state_->bundle->lock);
  return state_->send(lock, {.to = to, .word = {Word::Kind::medium, handler}, .data = data, .arguments = arguments});
}

Status Endpoint::request_long(std::uint32_t to, std::uint64_t offset, std::uint8_t handler,
                              std::span<const std::byte> data, std::span<const Argument> arguments) {
  BundleState::Lock lock(state_->bundle->lock);
  return state_->send(
      lock, {.to = to, .word = {Word::Kind::large, handler}, .data = data, .arguments = arguments, .offset = offset});
}

Status Endpoint::request_long_async(std::uint32_t to, std::uint64_t offset, std::uint8_t handler,
                                    std::span<const std::byte> data, std::span<const Argument> arguments) {
  BundleState::Lock lock(state_->bundle->lock);
  return state_->send(lock, {.to = to,
                             .word = {Word::Kind::large, handler},
                             .data = data,
                             .arguments = arguments,
                             .offset = offset,
                             .is_async = true});
}

Status Endpoint::get(std::uint32_t to, std::uint64_t source_offset, std::uint8_t handler, std::uint64_t offset,
                     std::uint64_t length, std::span<const Argument> arguments, bool is_async) {
  BundleState::Lock lock(state_->bundle->lock);
  return state_->send(lock, {.to = to,
                             .word = {Word::Kind::get, handler},
                             .data = {},
                             .arguments = arguments,
                             .offset = offset,
                             .is_async = is_async,
                             .source_offset = source_offset,
                             .length = length});
}

}  // namespace fairlead::am
