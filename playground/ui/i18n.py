"""The page's words in English and Korean. Every key has both; a test holds it to that."""

from __future__ import annotations

from typing import Any, Literal, get_args

from .chart_words import CHART_WORDS
from .sentences import korean
from .slot_words import SLOT_WORDS
from .verdict_words import VERDICT_WORDS

Language = Literal["en", "ko"]

_WORDS: dict[str, tuple[str, str]] = {
    "title": ("LLM Speed Playground", "LLM Speed Playground"),
    "tagline": (
        "One prompt, several ways of running a language model, side by side.",
        "하나의 프롬프트를 여러 실행 방식으로 나란히 돌려 비교합니다.",
    ),
    "preset": ("Comparison", "비교 구성"),
    "mode": ("Mode", "실행 방식"),
    "mode_info": (
        "Fair: by turns on a device. Race: all at once, contended. Benchmark: several runs, with their spread",
        "공정: 한 장치에서 차례로. 경주: 동시에, 서로 간섭됨. 벤치마크: 여러 번, 흩어짐까지",
    ),
    "benchmark": ("Benchmark", "벤치마크"),
    "repeats": ("Benchmark: runs a slot", "벤치마크: 슬롯당 횟수"),
    "benchmark.progress": ("Run {0} of {1}", "{1}회 중 {0}회째"),
    "benchmark.left": ("about {0} left", "약 {0} 남음"),
    "benchmark.median": ("Median of {0} runs", "{0}회 실행의 중앙값"),
    "benchmark.gaps": ("Gap p50 / p90 / p99, ms", "간격 p50 / p90 / p99, ms"),
    "benchmark.variation": ("Variation", "변동 계수"),
    "benchmark.runs": ("Every run, tok/s", "모든 실행, tok/s"),
    "benchmark.card": ("Run card (JSON)", "실행 카드 (JSON)"),
    "benchmark.markdown": ("Table (Markdown)", "표 (Markdown)"),
    "benchmark.how": (
        "{0} runs a slot by turns, {1} new tokens each, greedy, end of sequence ignored. Median ± median absolute deviation.",
        "슬롯당 {0}회 번갈아 실행, 매번 새 토큰 {1}개, 탐욕, 종료 토큰 무시. 중앙값 ± 중앙값 절대 편차.",
    ),
    "benchmark.noise": (
        "Noise floor: the reference against itself differed by up to {0}. Less than that is no measurable difference.",
        "잡음 바닥: 기준을 다시 재면 최대 {0} 달랐습니다. 그보다 작은 차이는 잴 수 없습니다.",
    ),
    "benchmark.blocked": (
        "The weights of all slots do not fit together, so each slot's runs followed one another.",
        "모든 슬롯의 가중치가 함께 들어가지 않아 슬롯별로 이어서 실행했습니다.",
    ),
    "benchmark.stopped": ("Stopped before the end; the complete runs are shown.", "끝나기 전에 중지됨. 완료된 실행만 보입니다."),
    "benchmark.busy": (
        "The machine was busy when this began: load {0} on {1} cores.",
        "시작할 때 장치가 바빴습니다: 코어 {1}개에 부하 {0}.",
    ),
    "fair": ("Fair", "공정"),
    "race": ("Race", "경주"),
    "prompt": ("Prompt", "프롬프트"),
    "prompt_hint": ("Ask something, or pick an example below", "질문을 입력하거나 아래 예시를 고르세요"),
    "examples": ("Examples", "예시"),
    "quality": ("Measure quality too (KL, top-1, perplexity)", "품질도 측정 (KL, 1순위 일치율, 퍼플렉서티)"),
    "compare": ("Compare", "비교"),
    "stop": ("Stop", "중지"),
    "language": ("Language", "언어"),
    "settings": ("Generation settings", "생성 설정"),
    "new_tokens": ("New tokens", "새 토큰 수"),
    "temperature": ("Temperature (0 = greedy)", "온도 (0 = 탐욕)"),
    "top_p": ("Top-p", "Top-p"),
    "seed": ("Seed", "시드"),
    "batch": ("Sequences at once (batch)", "동시에 답할 글의 수(배치)"),
    "draft_len": ("Draft length k", "초안 길이 k"),
    "draft_schedule": ("Draft length over time", "초안 길이 변화"),
    "draft_threshold": ("Draft confidence threshold (0 = none)", "초안 확신 문턱 (0 = 없음)"),
    "tint": ("Mark accepted drafts (tint, dotted underline)", "수락된 초안 표시 (색과 점선 밑줄)"),
    "stop_strings": ("Stop strings, one a line", "중지 문자열(한 줄에 하나)"),
    "system_prompt": ("System prompt", "시스템 프롬프트"),
    "chat_template": ("Chat template", "채팅 템플릿"),
    "ignore_eos": ("Ignore end of sequence (forces equal lengths)", "종료 토큰 무시 (길이를 같게)"),
    "models": ("Loaded models", "올라와 있는 모델"),
    "models_none": ("Nothing is loaded. A slot loads its model when it first runs.", "올라온 모델이 없습니다. 슬롯이 처음 실행될 때 올라옵니다."),
    "model": ("Model", "모델"),
    "bytes": ("Memory (added to what was loaded before)", "메모리 (먼저 올라온 것에 더해진 양)"),
    "slots": ("Slots", "슬롯"),
    "unload": ("Unload", "내리기"),
    "unload_all": ("Unload all", "모두 내리기"),
    "refresh": ("Refresh", "새로 고침"),
    "machine": ("Machine", "장치"),
    "machine_unknown": ("the worker is starting", "작업 프로세스를 시작하는 중"),
    "machine_busy": (
        "A comparison is running, and looking would disturb its numbers. Open this again when it has ended.",
        "비교가 실행 중이라 지금 살펴보면 수치에 영향을 줍니다. 끝난 뒤 다시 열어 주세요.",
    ),
    "replay.choose": ("Replay of a recorded comparison", "기록된 비교 다시 보기"),
    "replay.choice": ("Replay: {0}", "다시 보기: {0}"),
    "replay.tokens": ("tokens", "토큰"),
    "replay.play": ("Play", "재생"),
    "replay.pause": ("Pause", "일시 정지"),
    "replay.speed": ("Speed", "속도"),
    "replay.scrub": ("Time", "시간"),
    "present": ("Presentation (P)", "발표 화면 (P)"),
    "replay.waiting": ("Reading the prompt", "프롬프트를 읽는 중"),
    "replay.answering": ("Answering", "답하는 중"),
    "replay.done": ("Done", "완료"),
    "replay.race": ("Tokens over time, a line a slot", "시간에 따른 토큰, 슬롯마다 한 줄"),
    "replay.machine": ("Recorded on {0} ({1}, {2} cores), {3}; all columns from their own starts, at true speed",
                       "{0}({1}, 코어 {2}개)에서 {3}에 기록. 모든 열을 각자의 시작부터 실제 속도로 재생"),
    "replay.own": ("this page's last comparison", "이 화면의 마지막 비교"),
    "card.cache": ("Is the KV cache worth it?", "KV 캐시는 쓸 만한가요?"),
    "card.four_bit": ("What does 4-bit cost?", "4비트의 대가는?"),
    "card.drafter": ("When does a drafter pay?", "초안 모델은 언제 이득인가요?"),
    "markdown": ("Show answers as Markdown", "답을 마크다운으로 보기"),
    "editor": ("Edit columns", "열 편집"),
    "edit.column": ("Column", "열"),
    "edit.name": ("Name", "이름"),
    "edit.model_info": ("“builtin”, a hub id or a folder; Enter applies it", "“builtin”, 허브 ID 또는 폴더. Enter로 적용"),
    "edit.duplicate": ("Duplicate", "복제"),
    "edit.remove": ("Remove", "제거"),
    "edit.left": ("← Move left", "← 왼쪽으로"),
    "edit.right": ("Move right →", "오른쪽으로 →"),
    "edit.refer": ("Make it the reference", "기준으로 삼기"),
    "edit.not_here": ("{0} ✗ not here", "{0} ✗ 여기서는 안 됨"),
    "edit.why_not": ("✗ Why some choices do not run here", "✗ 여기서 안 되는 이유"),
    "table": ("All numbers as a table", "모든 수치를 표로"),
    "table.ttft": ("TTFT, s", "TTFT, 초"),
    "table.decode": ("Decode, tokens/s", "디코드, 토큰/초"),
    "table.e2e": ("End to end, tokens/s", "전체, 토큰/초"),
    "table.prefill": ("Prefill, tokens/s", "프리필, 토큰/초"),
    "table.prompt": ("Prompt tokens", "프롬프트 토큰"),
    "table.new": ("New tokens", "새 토큰"),
    "table.weights": ("Weights, bytes", "가중치, 바이트"),
    "table.drafter": ("Drafter, bytes", "초안 모델, 바이트"),
    "table.kv": ("KV cache, bytes", "KV 캐시, 바이트"),
    "table.peak": ("Peak memory, bytes", "최대 메모리, 바이트"),
    "table.load": ("Load, s", "불러오기, 초"),
    "table.warmup": ("Warm-up, s", "준비 운동, 초"),
    "table.compile": ("Compile, s", "컴파일, 초"),
    "edit.drafter": ("Drafter", "초안 모델"),
    "edit.drafter_info": (
        "For draft-model and universal: another model; Enter applies it",
        "draft-model과 universal용: 다른 모델. Enter로 적용",
    ),
    "edit.device_info": (
        "auto, cpu, cuda:1, cuda:0+cuda:1 (layers spread) or tensor:2 (layers split)",
        "auto, cpu, cuda:1, cuda:0+cuda:1(층을 나눠 올림), tensor:2(층을 쪼갬)",
    ),
    "edit.exit_layer_info": ("For early-exit: so many first layers draft", "early-exit용: 초안을 만드는 앞쪽 층의 수"),
    "edit.lean_info": ("Weights packed once for the CPU", "CPU용으로 가중치를 미리 배치"),
    "edit.keep_prefix_info": ("The KV cache stays for the next turn", "다음 차례까지 KV 캐시를 둠"),
    "fit": ("Will it fit?", "메모리에 들어갈까요?"),
    "fit.needed": ("Needed", "필요"),
    "fit.free": ("Free then", "그때 여유"),
    "fit.verdict": ("Verdict", "판정"),
    "fit.fits": ("fits", "들어감"),
    "fit.evicts": ("unloads {0}", "내려가는 것: {0}"),
    "fit.not_here": ("Not on this machine yet: its size is known once it has been fetched", "아직 이 장치에 없어 받은 뒤에야 크기를 압니다"),
    "capabilities": ("What this machine can run", "이 장치에서 실행할 수 있는 것"),
    "technique": ("Technique", "기법"),
    "runs_here": ("Runs here", "실행 가능"),
    "yes": ("yes", "예"),
    "gptq_form": ("Quantize with GPTQ", "GPTQ로 양자화"),
    "gptq_text": (
        "Adds a column whose weights are quantized here with GPTQ. That is done once when the column first runs, with "
        "progress and a Stop that works, and kept in the cache folder; “Loaded models” shows where. "
        "The folder is a checkpoint that Transformers and vLLM load.",
        "가중치를 여기서 GPTQ로 양자화한 열을 더합니다. 열이 처음 실행될 때 한 번만 하며 진행률이 보이고 중지할 수 있습니다. "
        "결과는 캐시 폴더에 보관되고 위치는 ‘올라와 있는 모델’에 나옵니다. Transformers와 vLLM이 그 폴더를 읽을 수 있습니다.",
    ),
    "gptq_add": ("Add this column", "이 열 추가"),
    "gptq_bits": ("Bits", "비트"),
    "gptq_group": ("Group size", "묶음 크기"),
    "gptq_group_info": ("Weights that share a scale", "배율을 공유하는 가중치 수"),
    "gptq_whole_column": ("whole column", "열 전체"),
    "gptq_act_order": ("Activation order", "활성값 순서"),
    "gptq_calibration": ("Calibration text (optional)", "보정용 글 (선택)"),
    "kv_panel": ("What the KV cache costs, and what would spoil it", "KV 캐시의 비용과, 캐시를 망치는 것"),
    "kv_batch": ("Sequences at once (batch)", "동시에 처리할 글의 수(배치)"),
    "kv_positions": ("Positions (prompt and answer)", "길이(프롬프트와 답, 토큰)"),
    "kv_unknown": (
        "This model is not on this machine yet: run a comparison with it first.",
        "아직 이 장치에 없는 모델입니다. 먼저 이 모델로 비교를 실행하세요.",
    ),
    "kv_cost": (
        "{0} × {1} positions need {2}; {3} are free beside the weights.",
        "{0} × {1} 위치에 {2} 필요, 가중치를 뺀 여유는 {3}.",
    ),
    "kv_end": ("It ends at {0} positions.", "{0} 위치에서 끝납니다."),
    "kv_no_end": ("Every layer has a window, so it does not grow further.", "모든 층에 윈도가 있어 더 커지지 않습니다."),
    "kv_too_much": (
        "Fewer sequences, a shorter context, or a quantized cache (fp8, quanto-int4).",
        "배치나 길이를 줄이거나 양자화 캐시(fp8, quanto-int4)를 쓰세요.",
    ),
    "doctor.resend": (
        "Each turn of a conversation sends the history again: without reuse of its cache, {0} ids cost {1} before the first token, at the prefill rate of the last run.",
        "대화는 매번 이전 내용을 다시 보냅니다. 캐시를 재사용하지 않으면 토큰 {0}개에 첫 토큰까지 {1}(마지막 실행의 프리필 속도 기준).",
    ),
    "doctor.use_cache": (
        "use_cache in the model's own configs: {0}",
        "모델 설정의 use_cache: {0}",
    ),
    "doctor.use_cache.remedy": (
        "Plain generate would run without a cache. Slots here set it themselves; in your code give use_cache=True.",
        "그냥 generate를 부르면 캐시 없이 돕니다. 여기의 슬롯은 스스로 켜며, 코드에서는 use_cache=True를 주세요.",
    ),
    "doctor.implementation": ("Cache that the checkpoint asks for: {0}", "체크포인트가 요구하는 캐시: {0}"),
    "doctor.implementation.remedy": (
        "Slots here choose their own; plain generate would take that one.",
        "여기의 슬롯은 스스로 고르지만, 그냥 generate는 그 캐시를 씁니다.",
    ),
    "doctor.training": ("Mode: {0}; gradient checkpointing: {1}", "모드: {0}, 그래디언트 체크포인팅: {1}"),
    "doctor.training.remedy": (
        "Gradient checkpointing or training mode turns the cache off: model.eval() and model.gradient_checkpointing_disable().",
        "그래디언트 체크포인팅이나 학습 모드는 캐시를 끕니다: model.eval(), model.gradient_checkpointing_disable().",
    ),
    "doctor.windows": (
        "{0} layers see a window of {1} positions and keep no more",
        "{0}개 층이 {1} 위치의 윈도만 보고 그만큼만 보관합니다",
    ),
    "doctor.kernel": ("SDPA kernel for one new position in {1}: {0}", "{1}에서 새 위치 하나의 SDPA 커널: {0}"),
    "doctor.kernel.remedy": (
        "torch falls back to its math kernel for these heads or this dtype; try bfloat16.",
        "이 헤드나 dtype에서는 torch가 math 커널로 물러납니다. bfloat16을 써 보세요.",
    ),
    "doctor.no_heads": ("No plain attention heads: nothing to say of its kernels", "일반 어텐션 헤드가 없어 커널은 알 수 없습니다"),
    "doctor.context": (
        "The whole context of {0} positions takes {1} MB of {2} MB free",
        "전체 문맥 {0} 위치에 {1} MB, 여유 {2} MB",
    ),
    "doctor.context.remedy": (
        "Long texts will not fit: use a shorter context, a quantized cache or more memory.",
        "긴 글은 들어가지 않습니다. 길이를 줄이거나 양자화 캐시나 더 큰 메모리를 쓰세요.",
    ),
    "follow_up": ("Follow up", "이어서 묻기"),
    "follow_up_first": (
        "A follow-up goes on from finished answers: press Compare first, and wait until every column has answered.",
        "이어서 묻기는 끝난 답에서 계속합니다. 먼저 비교를 누르고 모든 열이 답할 때까지 기다리세요.",
    ),
    "definitions": ("What the numbers mean", "수치의 뜻"),
    "definitions_text": (
        "- **TTFT**: from inputs on the device to the first new id. Loading, waiting and warm-up are never inside.\n"
        "- **Decode tok/s**: ids after the first group ÷ time from the first group to the last.\n"
        "- **End to end tok/s**: all new ids ÷ time from start to the last id.\n"
        "- **Acceptance**: accepted ÷ really drafted ids. **Mean accepted length**: 1 + accepted ÷ rounds.\n"
        "- **Peak memory**: the named counter's highest reading over the run, reset before it.\n"
        "- **Speed-up**: ratio of decode tok/s to the reference, only from fair runs of equal length.\n"
        "- **KL divergence**: mean of KL(reference ‖ slot) over the next-token distributions along the reference's answer, "
        "in nats. **Top-1 agreement**: share of those positions with the same most likely id. Both teacher-forced.\n"
        "- **Perplexity**: exp of the mean negative log-likelihood of three short texts that ship (English, Korean, code).\n"
        "- A dash means: not measurable. It is never a zero.",
        "- **TTFT**: 입력이 장치에 오른 뒤 첫 새 토큰까지. 불러오기·대기·준비 운동은 들어가지 않습니다.\n"
        "- **디코드 tok/s**: 첫 묶음 뒤의 토큰 수 ÷ 첫 묶음에서 마지막까지의 시간.\n"
        "- **전체 tok/s**: 모든 새 토큰 ÷ 시작부터 마지막 토큰까지의 시간.\n"
        "- **수락률**: 수락 ÷ 실제 초안 토큰. **평균 수락 길이**: 1 + 수락 ÷ 라운드.\n"
        "- **최대 메모리**: 실행 전에 초기화한, 이름 붙은 계수기의 최댓값.\n"
        "- **속도비**: 기준 슬롯과의 디코드 속도 비. 공정 모드에서 길이가 같을 때만.\n"
        "- **KL 발산**: 기준의 답변을 따라가며 본 다음 토큰 분포의 KL(기준 ‖ 슬롯) 평균, 단위 nat. "
        "**1순위 일치율**: 그 위치들 중 가장 유력한 토큰이 같은 비율.\n"
        "- **퍼플렉서티**: 함께 제공되는 짧은 글 세 편(영어·한국어·코드)의 평균 음의 로그 가능도의 exp.\n"
        "- 줄표(–)는 잴 수 없다는 뜻이며 0이 아닙니다.",
    ),
    **SLOT_WORDS,
    **CHART_WORDS,
    **VERDICT_WORDS,
}


class Words:
    """The words of one language: called with a key, it fills in the arguments."""

    def __init__(self, language: Language):
        self.language = language
        self._column = get_args(Language).index(language)

    def __call__(self, key: str, *arguments: Any) -> str:
        return _WORDS[key][self._column].format(*arguments)

    def said(self, sentence: str) -> str:
        """What a check or an engine said, which is English, in this language. A field at its front gets the name it has on the page."""
        if self.language == "en":
            return sentence
        field, colon, problem = sentence.partition(": ")
        if colon and (translated := korean(problem)) != problem:
            return f"{self(field) if field in _WORDS else field}: {translated}"
        return korean(sentence)

    def pick(self, english: str, korean: str) -> str:
        """A preset's own text in this language; English where it has no Korean."""
        return (english, korean or english)[self._column]


def keys() -> tuple[str, ...]:
    """Every key there is."""
    return tuple(_WORDS)


def pick_language(asked: str | None, accept_language: str | None) -> Language:
    """The asked language if there is such a page, else the browser's first choice, else English."""
    for wish in (asked, *(accept_language or "").replace(";", ",").split(",")):
        code = (wish or "").strip().lower()[:2]
        if code in get_args(Language):
            return code  # type: ignore[return-value]
    return "en"
