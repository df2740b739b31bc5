"""The fields of a request: those that lead nowhere, by API, and the names of those that lead out of the sandbox.

The same for the betas of Anthropic's API, which a header names.

Sources, looked up on 2026-11-18: the types in the clients of OpenAI and Anthropic (1.9.0), the request models of vLLM
and SGLang, the documentation of llama.cpp's server, LiteLLM's proxy and OpenRouter, what Claude Code 2.1.326 sends.
On 2026-11-20: the types in Google's client (google-genai 3.3.0).
"""

import re
from collections.abc import Iterable

from mlebench.gateway.wire import CHAT, COMPLETIONS, COUNT_CONTENT, COUNT_TOKENS, GENERATE, MESSAGES, RESPONSES


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# How an answer is sampled and formatted, at OpenAI and at servers that speak its API.
_OPENAI = _names(
    """model stream stream_options n seed stop temperature top_p frequency_penalty presence_penalty logit_bias logprobs
    top_logprobs max_tokens max_completion_tokens response_format user metadata client_metadata service_tier store
    safety_identifier prompt_cache_key prompt_cache_retention prompt_cache_options verbosity reasoning_effort reasoning
    thinking"""
)
_VLLM = _names(
    """best_of use_beam_search top_k min_p repetition_penalty length_penalty stop_token_ids include_stop_str_in_output
    ignore_eos min_tokens skip_special_tokens spaces_between_special_tokens truncate_prompt_tokens truncation_side
    prompt_logprobs allowed_token_ids bad_words echo add_generation_prompt continue_final_message add_special_tokens
    documents chat_template chat_template_kwargs guided_json guided_regex guided_choice guided_grammar
    guided_decoding_backend guided_whitespace_pattern structural_tag structured_outputs include_reasoning
    thinking_token_budget priority request_id return_tokens_as_token_ids return_token_ids cache_salt"""
)
_SGLANG = _names(
    """regex ebnf json_schema stop_regex no_stop_trim separate_reasoning stream_reasoning input_ids rid
    return_prompt_token_ids return_cached_tokens_details"""
)
_LLAMA_CPP = _names(
    """n_predict n_keep n_discard n_indent n_probs min_keep cache_prompt id_slot samplers mirostat mirostat_tau
    mirostat_eta dynatemp_range dynatemp_exponent typical_p tfs_z top_n_sigma xtc_probability xtc_threshold
    repeat_penalty repeat_last_n penalize_nl dry_multiplier dry_base dry_allowed_length dry_penalty_last_n
    dry_sequence_breakers grammar grammar_lazy grammar_triggers t_max_predict_ms post_sampling_probs timings_per_token
    return_tokens return_progress reasoning_format reasoning_budget parse_tool_calls"""
)
_OTHERS = _names(  # LiteLLM, OpenRouter, DeepSeek, Qwen, GLM, Mistral, Groq
    """drop_params top_a transforms usage enable_thinking thinking_budget preserve_thinking do_sample random_seed
    safe_prompt prompt_mode think"""  # not LiteLLM's retries, which cost more than it reports
)
_SERVERS = _OPENAI | _VLLM | _SGLANG | _LLAMA_CPP | _OTHERS
_TOOLS = _names("tools tool_choice parallel_tool_calls")
_ANTHROPIC = _TOOLS | _names(
    """model messages system max_tokens stream temperature top_p top_k stop_sequences thinking metadata service_tier
    speed cache_control context_management output_config output_format chat_template_kwargs"""
)
_GOOGLE = _names(
    """model contents systemInstruction tools toolConfig safetySettings generationConfig labels serviceTier store"""
)
KNOWN = {
    CHAT: _SERVERS | _TOOLS | _names("messages functions function_call modalities prediction cache_control"),
    COMPLETIONS: _SERVERS | _names("prompt suffix"),
    RESPONSES: _TOOLS
    | _VLLM - _names("best_of use_beam_search documents chat_template")
    | _names(
        """model input instructions stream stream_options max_output_tokens max_tool_calls metadata client_metadata
        temperature top_p top_k top_logprobs text reasoning truncation include user store service_tier safety_identifier
        prompt_cache_key prompt_cache_retention prompt_cache_options context_management seed stop
        frequency_penalty presence_penalty logit_bias transforms usage drop_params"""
    ),
    MESSAGES: _ANTHROPIC,
    COUNT_TOKENS: _ANTHROPIC,
    GENERATE: _GOOGLE,
    COUNT_CONTENT: _names("model contents systemInstruction tools generationConfig generateContentRequest"),
}
# Google's fields that have fields of their own, each with one of the three fates
GROUPS = {
    "generationConfig": _names(
        """candidateCount maxOutputTokens stopSequences temperature topP topK seed presencePenalty frequencyPenalty
        responseLogprobs logprobs responseMimeType responseSchema responseJsonSchema _responseJsonSchema
        responseModalities mediaResolution audioTimestamp thinkingConfig"""
    ),
    "thinkingConfig": _names("includeThoughts thinkingBudget thinkingLevel"),
    "toolConfig": _names("functionCallingConfig"),
    "functionCallingConfig": _names("mode allowedFunctionNames"),
    "generateContentRequest": _GOOGLE,
}

# What a conversation and its tools consist of; the same list for OpenAI's and Anthropic's APIs.
CONTENT_FIELDS = _names(
    "messages input system instructions prompt prediction tools functions contents systemInstruction"
)
CONTENT = _names(
    """role type content text name id status phase index
    tool_calls tool_call_id tool_use_id tool_name call_id function function_call namespace arguments input output
    is_error caller execution
    refusal reasoning reasoning_content reasoning_details reasoning_text summary summary_text thinking thinking_blocks
    signature thought_signature thought_signatures encrypted_content data format extra_content provider_specific_fields
    custom prefix partial weight cache_control prompt_cache_breakpoint
    image_url video_url audio_url file_url url uri image video audio input_audio file file_data filename file_name
    detail media_type source title context citations annotations logprobs
    min_pixels max_pixels total_pixels fps nframes
    action actions operation outcome stdout stderr exit_code max_output_length acknowledged_safety_checks
    pending_safety_checks query queries results result code outputs
    description parameters input_schema strict tools defer_loading allowed_callers input_examples
    eager_input_streaming display_width_px display_height_px display_number display_width display_height environment
    enable_zoom max_characters tool"""
)
# The agent chooses what these hold, and no provider interprets it.
OPAQUE = _names(
    """input arguments parameters input_schema input_examples annotations citations action actions operation logprobs
    format extra_content provider_specific_fields results queries outcome cache_control"""
)
GOOGLE_CONTENT = _names(
    """role parts text thought thoughtSignature inlineData mimeType data displayName mediaResolution level
    videoMetadata startOffset endOffset fps functionCall functionResponse id name args response scheduling willContinue
    executableCode language code codeExecutionResult outcome output
    functionDeclarations description behavior parameters parametersJsonSchema responseJsonSchema"""
)
GOOGLE_OPAQUE = _names(
    """args response parameters parametersJsonSchema responseSchema responseJsonSchema _responseJsonSchema labels"""
)
SCHEMAS = _names(
    """parametersJsonSchema responseSchema responseJsonSchema _responseJsonSchema parameters
    input_schema response_format text json_schema guided_json structured_outputs output_config
    output_format"""
)
# Media are part of the request (`data:`), or else somewhere that the provider would fetch them from.
ADDRESSES = _names("image_url video_url audio_url file_url url uri image video audio input_audio file")
# Files at the provider, or wherever it would fetch them from, and what `--allow-tool` calls them
FILES = {
    **dict.fromkeys(("file_id", "file_ids", "vector_store_ids", "container_id"), "file_id"),
    "fileData": "fileData",
}

# Fields that lead out: to searches, to other addresses and models, or to code.
_OUT = _names(
    """preset route provider extra_body extra_headers
    extra_query api_key api_version user_config logits_processors custom_logit_processor custom_params vllm_xargs
    kv_transfer_params session_params lora lora_path mcp_servers deployment_id
    routing_config"""
)
# Fields that name what the provider has stored, or have it store something to be fetched later
_STORED = _names(
    """previous_response_id conversation background container prompt_id input_file_id file_id file_ids
    vector_store_ids cached_content continuation_token"""
)
_SUSPECT = re.compile(
    r"search|plugin|mcp|connector|datasource|retriev|brows|fallback|apibase|ur[li]$|endpoint|webhook|callback|proxy"
    r"|host$|model|litellm"
)
_SUSPECT_STORED = re.compile(r"fileid|vectorstore")
# Kinds of tools that lead out, among those that are not known to run where the agent runs
_OUT_TOOLS = re.compile(r"search|fetch|brows|url|maps|retriev|mcp|connector|codeexec|codeinterpreter|container|^shell")
# Betas, without their dates. What they switch on is a field or a kind of tool, which is checked as well.
BETAS = _names(
    """claude-code interleaved-thinking dev-full-thinking redact-thinking adaptive-thinking thinking-token-count
    thinking-display-updates thinking-binding-controls effort task-budgets output-128k output-300k context-1m
    model-context-window-exceeded context-management max-tokens-3-5-sonnet structured-outputs token-counting
    prompt-caching prompt-caching-scope prompt-caching-evict extended-cache-ttl cache-diagnosis pdfs computer-use
    fine-grained-tool-streaming token-efficient-tools tool-examples advanced-tool-use tool-search-tool
    mid-conversation-system mid-conversation-system-clear-at mid-conversation-tool-changes
    mid-conversation-output-config"""
)
_OUT_BETAS = re.compile(
    r"search|fetch|brows|execution|container|sandbox|environment|file|skill|mcp|connector|plugin|fallback|batch"
    r"|managed|memory|dream|thread|profile|tunnel|ccr"
)
_DATE = re.compile(r"-(\d{8}|\d{4}-\d\d-\d\d)$")
# What `--allow-tool` calls them
ALIASES = {
    "web_search_options": "web_search",
    "mcp_servers": "mcp",
    "files-api": "file_id",
    "googleSearch": "web_search",
    "urlContext": "web_fetch",
    "codeExecution": "code_execution",
    "fileSearch": "file_search",
    "mcpServers": "mcp",
    "fileData": "url",
}


def names_model(name: str) -> bool:
    return "model" in _plain(name)


def leads_out(name: str) -> bool:
    """Whether the name of a field that is not known says that it leads out; spelled in any way."""
    plain = _plain(name)
    return plain in {out.replace("_", "") for out in _OUT} or bool(_SUSPECT.search(plain))


def names_stored(name: str) -> bool:
    """Whether the name of a field that is not known says that it refers to what the provider stores."""
    plain = _plain(name)
    return plain in {stored.replace("_", "") for stored in _STORED} or bool(_SUSPECT_STORED.search(plain))


def tool_leads_out(kind: str) -> bool:
    return bool(_OUT_TOOLS.search(_plain(kind)))


def beta_name(beta: str) -> str:
    """The name of a beta without its date."""
    return _DATE.sub("", beta)


def is_known_beta(beta: str) -> bool:
    name = beta_name(beta)
    return name != beta and name in BETAS


def beta_leads_out(beta: str) -> bool:
    """Whether the name of a beta that is not known says that it leads out."""
    return bool(_OUT_BETAS.search(beta.lower()))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def opening(names: Iterable[str]) -> list[str]:
    """Those of the names whose field or beta would otherwise be refused or removed."""
    known = frozenset().union(*KNOWN.values(), *GROUPS.values()) - {"prompt"}  # in Responses, that is a stored one
    return [name for name in names if name not in known and not is_known_beta(name)]
